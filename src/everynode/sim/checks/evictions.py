"""F29: evictions respect PodDisruptionBudgets, and controllers never evict pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import is_true
from everynode.sim.checks.possible_views import by_controller
from everynode.sim.history.record import Commit, request_body


class Evictions(Check):
    """After an eviction at least as many pods are Ready as their PodDisruptionBudget requires.

    Deletes by our controllers are not evictions: they follow maxUnavailable and ignore disruption
    budgets, as the native DaemonSet controller does.
    """

    id: ClassVar[str] = "F29"
    title: ClassVar[str] = "evictions keep to disruption budgets, and are nothing that we do"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that was evicted."""
        cause, pod = commit.cause, commit.before
        if pod is None or cause is None or not cause.request.path.endswith("/eviction"):
            return ()
        return self._check(commit, pod)

    def _check(self, commit: Commit, pod: Pod) -> Iterator[str]:
        if by_controller(commit):
            yield f"{pod.name} was evicted by {commit.actor}"
        gone = commit.after is None or commit.after.terminating
        if not gone or pod.terminating or pod.finished or not is_true(pod, keys.READY):
            return  # no disruption budget counts the pod
        for least, labels in self._budgets():
            ready = sum(_is_left(each, labels) for each in self.record.cluster.pods.values())
            if _has(pod, labels) and ready < least:
                yield f"{pod.name} was evicted: {ready} pods are Ready now, {least} had to be"

    def _budgets(self) -> Iterator[tuple[int, dict[str, str]]]:
        """By disruption budget, how many pods must stay Ready and the labels that select them."""
        found: dict[str, dict[str, Any]] = {}
        for cause in self.record.requests:
            if cause.request.path.endswith("/poddisruptionbudgets"):
                body = request_body(cause.request)
                found.setdefault(body["metadata"]["name"], body["spec"])
        for spec in found.values():
            yield spec["minAvailable"], spec["selector"]["matchLabels"]


def _is_left(pod: Pod, labels: dict[str, str]) -> bool:
    staying = not pod.terminating and not pod.finished
    return staying and is_true(pod, keys.READY) and _has(pod, labels)


def _has(pod: Pod, labels: dict[str, str]) -> bool:
    return labels.items() <= pod.metadata.labels.items()
