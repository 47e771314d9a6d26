"""Pod garbage collection: removes the pods of nodes that no longer exist."""

from __future__ import annotations

from functools import partial
from typing import Final

from everynode.components.informers import BY_NODE, SharedInformers
from everynode.components.kubelet.node import SimulationSettings
from everynode.components.objects import FullNode, FullPod
from everynode.components.request_queue import RequestQueue, RequestResult, ignore_result
from everynode.components.scheduler.scheduler import disruption_condition, status_patch
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.resources import NODES, PODS

_RETRY: Final = 1.0


class PodGarbageCollector:
    """Waits a while for a deleted node to come back, then removes the pods bound to it."""

    def __init__(
        self,
        informers: SharedInformers,
        settings: SimulationSettings,
        *,
        timers: Timers,
        requests: RequestQueue,
    ) -> None:
        self._informers = informers
        self._settings = settings
        self._timers = timers
        self._requests = requests
        self._scheduled: dict[str, None] = {}  # nodes with a timer
        informers.nodes.subscribe(self._on_node)
        informers.pods.subscribe(self._on_pod)

    def check_all_pods(self) -> None:
        """Check every pod; called once, when the informers are synced."""
        for pod in list(self._informers.pods.all().values()):
            self._on_pod(None, pod)

    def _on_node(self, before: FullNode | None, after: FullNode | None) -> None:
        if after is None and before is not None and self._informers.pods.by(BY_NODE, before.name):
            self._schedule_check(before.name)

    def _on_pod(self, before: FullPod | None, after: FullPod | None) -> None:
        if after is None or not after.spec.node_name or not self._informers.nodes.synced:
            return
        if after.spec.node_name not in self._informers.nodes:
            self._schedule_check(after.spec.node_name)

    def _schedule_check(self, node: str) -> None:
        if node not in self._scheduled:
            self._scheduled[node] = None
            grace = self._settings.behaviour.scaled(self._settings.behaviour.orphan_grace)
            self._timers.call_later(grace, partial(self._verify_node_gone, node))

    def _verify_node_gone(self, node: str) -> None:
        """Read the node before its pods are removed, as the watch may lag."""
        if node in self._informers.nodes or not self._informers.pods.by(BY_NODE, node):
            self._scheduled.pop(node, None)
            return
        self._requests.send(verbs.get(NODES, node), partial(self._on_node_read, node))

    def _on_node_read(self, node: str, result: RequestResult) -> None:
        self._scheduled.pop(node, None)
        if isinstance(result, NotFound):
            for pod in list(self._informers.pods.by(BY_NODE, node).values()):
                self._remove(pod)
        elif isinstance(result, KubeError):
            self._schedule_check(node)

    def _remove(self, pod: FullPod) -> None:
        if not pod.finished:
            text = "PodGC: node no longer exists"
            condition = disruption_condition("DeletionByPodGC", text, self._settings.clock.now())
            status = {"phase": "Failed", "conditions": [condition]}
            self._requests.send(status_patch(pod, status), ignore_result)
        meta = pod.metadata
        removal = verbs.delete(
            PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0
        )
        self._requests.send(removal, partial(self._on_removed, pod))

    def _on_removed(self, pod: FullPod, result: RequestResult) -> None:
        if isinstance(result, KubeError) and not isinstance(result, NotFound | Conflict):
            self._timers.call_later(_RETRY, partial(self._schedule_check, pod.spec.node_name))
