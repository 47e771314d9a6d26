"""Seeded cluster: puts the objects of a real cluster into the store of an embedded one.

Pods keep their uids, revisions and conditions; simulated kubelets take them over. The API server
would set times and uids of its own, so that these objects are stored directly. What a template
refers to, such as a service account, is taken to be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from everynode.api.decode import DecodeError
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.resources import format_amount, parse_amounts
from everynode.api.revision_data import decode_revision_data
from everynode.apiserver.resources.nodes import NodeStrategy
from everynode.apiserver.resources.pods import PodStrategy
from everynode.apiserver.storage.store import Store
from everynode.components.annotations import BEHAVIOUR, NOT_READY, STOPPED
from everynode.decide.node.availability import is_ready
from everynode.decide.node.maintenance import is_set_aside
from everynode.forecast.seeded_pod import containers_to_restart, describe_pod
from everynode.inspect.stored_objects import StoredObjects
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import AlreadyExists, Invalid
from everynode.kube.resources import NAMESPACES, Resource
from everynode.kube.watch.decode import Decoder
from everynode.sim.plans.plan import Timing

Object = dict[str, Any]

_SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
_REVISIONS: Final = "controllerrevisions.apps"
_node_fields: Final = NodeStrategy().selectable
_pod_fields: Final = PodStrategy().selectable
_json: Final = msgspec.json.Decoder(Object).decode
_decode_node: Final = Decoder(Node).one
_decode_pod: Final = Decoder(Pod).one
_decode_revision: Final = Decoder(ControllerRevision).one


class SeededNodes(msgspec.Struct, frozen=True):
    """The nodes that do not behave as the others do."""

    silent: tuple[str, ...] = ()  # left alone: no heartbeat, or in maintenance
    not_ready: frozenset[str] = frozenset()  # their kubelet reports, and no pod becomes Ready
    failing: frozenset[str] = frozenset()  # Ready, with a pod that fails until the new version


class Seeding:
    """Puts the objects of one DaemonSet into a store; the clock is that of the real cluster."""

    def __init__(self, store: Store, client: Client, objects: StoredObjects) -> None:
        self._store = store
        self._client = client
        self._objects = objects

    async def add_references(self, namespace: str, templates: Iterable[Object]) -> None:
        """Create the namespace, and what the pods of the templates refer to by name."""
        await self._create(NAMESPACES, {"metadata": {"name": namespace}})
        known = self._priorities()
        for spec in templates:
            account = spec.get("serviceAccountName") or spec.get("serviceAccount")
            if account:
                body: Object = {"metadata": {"name": account}}
                await self._create(_SERVICE_ACCOUNTS, body, namespace=namespace)
            name = spec.get("priorityClassName")
            if name:
                value = known.get(name, spec.get("priority") or 0)
                body = {"metadata": {"name": name}, "value": value}
                await self._create(_PRIORITY_CLASSES, body)

    def templates(self) -> Iterator[Object]:
        """Yield the pod specs of all revisions that can be read."""
        for body in self._objects.revisions:
            try:
                template = decode_revision_data(bytes(_decode_revision(body).data))
                yield _json(template).get("spec") or {}
            except (DecodeError, msgspec.DecodeError, ValueError):
                continue

    def add_nodes(self) -> SeededNodes:
        """Store the nodes; those that are set aside have a kubelet that does nothing."""
        collection = self._store.collection("nodes")
        silent, not_ready = [], set()
        for body in self._objects.nodes or ():
            node, whole = _decode_node(body), _json(body)
            self._take_room(node.name, whole)
            if is_set_aside(node):
                silent.append(node.name)
                whole["metadata"]["annotations"] = {STOPPED: "true"}
            elif node.ready != "True":
                not_ready.add(node.name)
                whole["metadata"]["annotations"] = {NOT_READY: "true"}
            self._store.put(collection, whole, fields=_node_fields(whole))
        failing = frozenset(
            pod.node for pod in map(_decode_pod, self._objects.pods) if not is_ready(pod)
        )
        return SeededNodes(tuple(sorted(silent)), frozenset(not_ready), failing - {*silent})

    def _take_room(self, name: str, node: Object) -> None:
        """Let a node have as much less to allocate as the pods of others request there."""
        used = (self._objects.used or {}).get(name)
        if not used:
            return
        status = node["status"]
        free = parse_amounts(status.get("allocatable") or {})
        status["allocatable"] = {
            each: format_amount(each, max(0, amount - used.get(each, 0)))
            for each, amount in free.items()
        }

    def add_revisions(self) -> None:
        """Store the ControllerRevisions."""
        collection = self._store.collection(_REVISIONS)
        for body in self._objects.revisions:
            self._store.put(collection, _json(body))

    def add_daemonset(self, stored: Object, live: Object) -> None:
        """Give the DaemonSet that the server has just stored the identity and status it has."""
        metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
        plural = stored["apiVersion"].partition("/")[0]
        collection = self._store.collection(f"daemonsets.{plural}")
        whole = {**stored, "metadata": metadata, "status": live.get("status") or {}}
        self._store.put(collection, whole)

    def add_pods(self, timing: Timing) -> None:
        """Store the pods; those that start, stop or fail go on with it."""
        collection = self._store.collection("pods")
        start = timing.pull + timing.start + timing.ready
        for body in self._objects.pods:
            pod, whole = _decode_pod(body), _json(body)
            metadata = whole["metadata"]
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            behaviour = describe_pod(
                pod, self._objects.now, grace=grace, start=start, stop=timing.stop
            )
            annotations = {**(metadata.get("annotations") or {})}
            annotations.pop(BEHAVIOUR, None)
            if behaviour:
                annotations[BEHAVIOUR] = behaviour
            metadata["annotations"] = annotations
            _name_images_as_written(whole, containers_to_restart(pod))
            self._store.put(collection, whole, fields=_pod_fields(whole))

    def _priorities(self) -> dict[str, int]:
        """Return the value of each priority class that a pod has."""
        found: dict[str, int] = {}
        for body in self._objects.pods:
            spec = _json(body)["spec"]
            if spec.get("priorityClassName"):
                found[spec["priorityClassName"]] = spec.get("priority") or 0
        return found

    async def _create(self, resource: Resource, body: Object, *, namespace: str = "") -> None:
        try:
            await self._client.write(verbs.create(resource, body, namespace=namespace), bytes)
        except (AlreadyExists, Invalid):
            return  # it is built in, or the pods that refer to it will be refused


def _name_images_as_written(pod: Object, old: Collection[str]) -> None:
    """Let the status of all but the old containers name their images as the spec does.

    A container runtime reports a canonical name, which simulated kubelets take for another image.
    """
    images = {each["name"]: each.get("image") for each in pod["spec"].get("containers") or ()}
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status.get("name") not in old:
            status["image"] = images.get(status.get("name"), status.get("image"))
