"""Removing the pods of nodes that no longer exist."""

from __future__ import annotations

from functools import partial
from typing import Final

from everynode.cluster.machinery.objects import Node, Pod
from everynode.cluster.machinery.scheduler import disruption, status_patch
from everynode.cluster.machinery.seats import Setting
from everynode.cluster.machinery.shared import NODE, Shared
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import Answer, Writes, ignore
from everynode.kube import verbs
from everynode.kube.errors import Conflict, KubeError, NotFound
from everynode.kube.resources import NODES, PODS

_RETRY: Final = 1.0


class OrphanedPods:
    """Gives a vanished node some time to come back, then removes what was bound to it."""

    def __init__(self, shared: Shared, setting: Setting, *, timers: Timers, writes: Writes) -> None:
        self._shared = shared
        self._setting = setting
        self._timers = timers
        self._writes = writes
        self._waiting: dict[str, None] = {}  # nodes that are looked at later
        shared.nodes.subscribe(self._on_node)
        shared.pods.subscribe(self._on_pod)

    def look_at_all(self) -> None:
        """Look at every pod; called once, when all nodes and pods are known."""
        for pod in list(self._shared.pods.all().values()):
            self._on_pod(None, pod)

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if after is None and before is not None and self._shared.pods.by(NODE, before.name):
            self._wait(before.name)

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        if after is None or not after.spec.node_name or not self._shared.nodes.synced:
            return
        if after.spec.node_name not in self._shared.nodes:
            self._wait(after.spec.node_name)

    def _wait(self, node: str) -> None:
        if node not in self._waiting:
            self._waiting[node] = None
            grace = self._setting.behaviour.scaled(self._setting.behaviour.orphan_grace)
            self._timers.after(grace, partial(self._ask, node))

    def _ask(self, node: str) -> None:
        """The watch may be behind: what is to be removed is looked up first."""
        if node in self._shared.nodes or not self._shared.pods.by(NODE, node):
            self._waiting.pop(node, None)
            return
        self._writes.send(verbs.get(NODES, node), partial(self._answered, node))

    def _answered(self, node: str, answer: Answer) -> None:
        self._waiting.pop(node, None)
        if isinstance(answer, NotFound):
            for pod in list(self._shared.pods.by(NODE, node).values()):
                self._remove(pod)
        elif isinstance(answer, KubeError):
            self._wait(node)

    def _remove(self, pod: Pod) -> None:
        if not pod.finished:
            text = "PodGC: node no longer exists"
            condition = disruption("DeletionByPodGC", text, self._setting.clock.now())
            status = {"phase": "Failed", "conditions": [condition]}
            self._writes.send(status_patch(pod, status), ignore)
        meta = pod.metadata
        removal = verbs.delete(
            PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0
        )
        self._writes.send(removal, partial(self._removed, pod))

    def _removed(self, pod: Pod, answer: Answer) -> None:
        if isinstance(answer, KubeError) and not isinstance(answer, NotFound | Conflict):
            self._timers.after(_RETRY, partial(self._wait, pod.spec.node_name))
