"""F29: whoever evicts pods is bound by their disruption budget; we never evict anybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import is_true
from everynode.sim.invariants.views import by_controller
from everynode.sim.record import Commit, body_of


class Evictions(Invariant):
    """After an eviction as many pods are Ready as their budget asks for.

    Our own deletes are no evictions: they follow maxUnavailable, whatever a budget says, as those
    of the peers do.
    """

    id: ClassVar[str] = "F29"
    title: ClassVar[str] = "evictions keep to disruption budgets, and are nothing that we do"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a pod that was evicted."""
        asked, pod = commit.asked, commit.before
        if pod is None or asked is None or not asked.request.path.endswith("/eviction"):
            return ()
        return self._judge(commit, pod)

    def _judge(self, commit: Commit, pod: Pod) -> Iterator[str]:
        if by_controller(commit):
            yield f"{pod.name} was evicted by {commit.actor}"
        gone = commit.after is None or commit.after.terminating
        if not gone or pod.terminating or pod.finished or not is_true(pod, keys.READY):
            return  # no budget counts it
        for least, labels in self._budgets():
            ready = sum(_is_left(each, labels) for each in self.record.scene.pods.values())
            if _has(pod, labels) and ready < least:
                yield f"{pod.name} was evicted: {ready} pods are Ready now, {least} had to be"

    def _budgets(self) -> Iterator[tuple[int, dict[str, str]]]:
        """How many pods must stay Ready, and the labels of these pods."""
        found: dict[str, dict[str, Any]] = {}
        for asked in self.record.asked:
            if asked.request.path.endswith("/poddisruptionbudgets"):
                body = body_of(asked.request)
                found.setdefault(body["metadata"]["name"], body["spec"])
        for spec in found.values():
            yield spec["minAvailable"], spec["selector"]["matchLabels"]


def _is_left(pod: Pod, labels: dict[str, str]) -> bool:
    staying = not pod.terminating and not pod.finished
    return staying and is_true(pod, keys.READY) and _has(pod, labels)


def _has(pod: Pod, labels: dict[str, str]) -> bool:
    return labels.items() <= pod.metadata.labels.items()
