"""ControllerProbe: a DaemonSet without nodes that shows what a controller's watches have seen.

A controller gets DaemonSets and pods by watches of their own, each in the order of the writes and
without an order between them. If it sees the target before it sees that the pods have no owner any
more, it creates a second pod on every node. Two observations exclude that, without a guess at how
long a watch may take:

- A status written for a probe: the controller serves the kind and has seen every DaemonSet of it
  that was created or deleted before the probe.
- A probe that has adopted a pod and a ControllerRevision: the controller has seen every change of
  pods and revisions before these were created. Without the revisions it would make another one for
  the same template and replace every pod for it. (The native controller and Kruise's decide from
  what their watches have shown; ours lists the pods anew when it finds a DaemonSet.)

The pod is never started: no scheduler takes it, and no node has the label that it asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import click
import msgspec

from everynode.api.keys import CLI_FIELD_MANAGER
from everynode.cli.migration.plan import Object, is_observed, owned_pods
from everynode.clock import Clock
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import AlreadyExists, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import PODS, REVISIONS, Resource

_LABEL: Final = "everynode.io/migration-probe"
_NO_NODE: Final = {_LABEL: "no-node-has-this"}
_NO_SCHEDULER: Final = "everynode-migration-probe"
WAIT_TIMEOUT: Final = 60.0  # of each wait
_NOTICE_AFTER: Final = 5.0
_POLL_INTERVAL: Final = 0.1

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ControllerProbe:
    """What the controller of one kind has seen, in one namespace."""

    def __init__(
        self, client: Client, clock: Clock, resource: Resource, *, namespace: str, manifest: Object
    ) -> None:
        self._client = client
        self._clock = clock
        self._resource = resource
        self._namespace = namespace
        # Always the same, so that the next run deletes what an interrupted one has left.
        self._name = f"{manifest['metadata']['name']}-migration-probe"
        [container, *_] = manifest["spec"]["template"]["spec"]["containers"]
        self._image = container["image"]
        # Another one each time: no other probe adopts the pod.
        self._labels = {_LABEL: clock.name_suffix(10)}

    async def controller_answers(self) -> bool:
        """Whether a controller has seen all DaemonSets of the kind as they are now."""
        async with self._temporary_daemonset() as probe:
            return await self._is_observed(probe)

    async def controller_sees_pods(self) -> bool:
        """Whether the controller has seen all pods and revisions of the namespace as they are."""
        async with self._temporary_daemonset() as probe:
            if not await self._is_observed(probe):
                return False
            created = [
                await self._create(REVISIONS, self._revision),
                await self._create(PODS, self._pod),
            ]
            try:
                return await self._are_adopted(created, probe)
            finally:
                await self._delete(PODS)
                await self._delete(REVISIONS)

    async def try_pod(self) -> None:
        """Ask the API server, in a dry run, whether it accepts the pod; raises KubeError."""
        await self._client.write(self._create_request(PODS, self._pod, dry_run=True), bytes)

    @property
    def _pod(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name, "labels": self._labels},
            "spec": self._pod_spec | {"schedulerName": _NO_SCHEDULER},
        }

    @property
    def _revision(self) -> Object:
        return {
            "apiVersion": REVISIONS.api_version,
            "kind": "ControllerRevision",
            "metadata": {"name": self._name, "labels": self._labels},
            "data": {"spec": {"template": {"$patch": "replace"}}},
            "revision": 1,
        }

    @property
    def _pod_spec(self) -> Object:
        """A pod that the strictest of the pod security standards accepts."""
        return {
            "nodeSelector": _NO_NODE,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "probe",
                    "image": self._image,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        }

    @asynccontextmanager
    async def _temporary_daemonset(self) -> AsyncIterator[Object]:
        """Create the DaemonSet, and delete it at the end."""
        body = {
            "apiVersion": self._resource.api_version,
            "kind": "DaemonSet",
            "metadata": {"name": self._name, "labels": self._labels},
            "spec": {
                "selector": {"matchLabels": self._labels},
                "template": {"metadata": {"labels": self._labels}, "spec": self._pod_spec},
            },
        }
        probe = await self._create(self._resource, body)
        try:
            yield probe
        finally:
            await self._delete(self._resource)

    async def _is_observed(self, probe: Object) -> bool:
        async def observed() -> bool:
            live = await self._get(self._resource, probe)
            return is_observed(live)

        return await wait_until(observed, self._clock)

    async def _are_adopted(self, created: list[Object], probe: Object) -> bool:
        owner = probe["metadata"]["uid"]

        async def adopted() -> bool:
            live = [
                await self._get(resource, each)
                for resource, each in zip((REVISIONS, PODS), created, strict=True)
            ]
            if len(owned_pods([each["metadata"] for each in live], owner)) == len(created):
                return True
            # A revision alone makes no controller reconcile; a change of the DaemonSet does.
            poke = {"metadata": {"annotations": {_LABEL: self._clock.name_suffix(10)}}}
            request = verbs.patch(
                self._resource,
                self._name,
                poke,
                namespace=self._namespace,
                manager=CLI_FIELD_MANAGER,
            )
            await self._client.write(request, bytes)
            return False

        return await wait_until(adopted, self._clock)

    async def _get(self, resource: Resource, created: Object) -> Object:
        """Read the probe or its pod; raises UserError if it was replaced or is gone."""
        with suppress(NotFound):
            request = verbs.get(resource, self._name, namespace=self._namespace)
            live = await self._client.read(request, _decode)
            if live["metadata"]["uid"] == created["metadata"]["uid"]:
                return live
        raise UserError(
            f"{resource.kind} {self._name}, which the migration has created, was deleted by "
            "another program; run this command again to go on"
        )

    async def _create(self, resource: Resource, body: Object) -> Object:
        """Create it anew: what an interrupted run has left says nothing about now."""
        created: list[Object] = []

        async def done() -> bool:
            try:
                request = self._create_request(resource, body)
                created.append(await self._client.write(request, _decode))
            except AlreadyExists:
                await self._delete(resource)
            return bool(created)

        if not await wait_until(done, self._clock):
            raise UserError(
                f"{resource.kind} {self._name} of an earlier run is still there after "
                f"{WAIT_TIMEOUT:.0f} seconds: delete it, then run this command again to go on"
            )
        return created[0]

    async def _delete(self, resource: Resource) -> None:
        request = verbs.delete(
            resource, self._name, namespace=self._namespace, propagation="Background"
        )
        with suppress(NotFound):
            await self._client.write(request, bytes)

    def _create_request(
        self, resource: Resource, body: Object, *, dry_run: bool = False
    ) -> Request:
        return verbs.create(
            resource, body, namespace=self._namespace, manager=CLI_FIELD_MANAGER, dry_run=dry_run
        )


async def wait_until(holds: Callable[[], Awaitable[bool]], clock: Clock, notice: str = "") -> bool:
    """Wait until something holds; return whether it did in time. A long wait prints the notice."""
    began = clock.monotonic()
    while not await holds():
        waited = clock.monotonic() - began
        if waited > WAIT_TIMEOUT:
            return False
        if notice and waited > _NOTICE_AFTER:
            click.echo(notice, err=True)
            notice = ""
        await clock.sleep(_POLL_INTERVAL)
    return True
