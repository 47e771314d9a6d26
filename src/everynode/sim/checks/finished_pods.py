"""S7 and L4: a finished pod is deleted only after its replacement exists, with the R7 back-off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from everynode.api.objects import Node, Pod
from everynode.api.times import seconds
from everynode.sim.checks.check import Check
from everynode.sim.checks.oracle import Oracle, is_watched, node_fit
from everynode.sim.checks.pod_health import clock_lag
from everynode.sim.checks.possible_views import TooManyViews, owner_uid, possible_views
from everynode.sim.history.record import Commit

_MAX_BACKOFF: Final = 900.0
_BACKOFF_RESET: Final = 1800.0
_SHUTDOWN: Final = "GracefulNodeShutdownInProgress"
_SHUTDOWN_REASONS: Final = ("Terminated", "NodeShutdown")
_LONG_PAUSE: Final = 300.0  # while a node that shut down is not Ready
_Rule = Callable[[Oracle, Pod], str]


class FinishedPods(Check):
    """Checks nodes whose pod failed or succeeded."""

    id: ClassVar[str] = "S7"
    title: ClassVar[str] = "an ended pod goes after its successor came, and that waits"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check the deletion of a finished pod, and a pod that is created beside one."""
        before: Pod | None = commit.before
        after: Pod | None = commit.after
        pod = after if before is None else before
        assert pod is not None
        if owner_uid(pod) not in self.record.cluster.sets:
            return
        going = after is None or after.terminating
        try:
            if before is None:
                fault = self._first_fault(commit, pod, _check_successor)
            elif before.finished and going and not before.terminating:
                fault = self._first_fault(commit, pod, _check_deletion)
            else:
                return
        except TooManyViews:
            return
        if fault:
            yield f"{fault}: {pod.name} on {pod.node}"

    def _first_fault(self, commit: Commit, pod: Pod, check: _Rule) -> str:
        assert commit.cause is not None
        first = ""
        for cluster, _ in possible_views(self.record, commit):
            ds = cluster.sets.get(owner_uid(pod))
            fault = (
                check(Oracle(cluster, ds, commit.cause.evaluated_at), pod) if ds is not None else ""
            )
            if not fault:
                return ""
            first = first or fault
        return first


def _check_deletion(oracle: Oracle, pod: Pod) -> str:
    """A finished pod is deleted only where its node has another pod or should have none."""
    name = pod.node
    node = oracle.cluster.nodes.get(name)
    if (
        node is None
        or not node_fit(oracle.node_template(name)).should_run(node)
        or oracle.staying(name)
    ):
        return ""
    return "S7: an ended pod was deleted before its successor came"


def _check_successor(oracle: Oracle, pod: Pod) -> str:
    """A replacement is created after the back-off, and records how many failures came before it."""
    node = oracle.cluster.nodes.get(pod.node)
    if node is not None and _shuts_down(node):
        return "L4: a pod was created on a node that shuts down"
    ended = [each for each in oracle.pods_on(pod.node) if each.finished and is_watched(each)]
    ended = [each for each in ended if each.uid != pod.uid]
    if not ended:
        return ""
    due = max(_ended_at(each) + _pause_after(oracle, each, node) for each in ended)
    if due > oracle.now:
        return f"L4: a pod was created {due - oracle.now:.1f} s too soon after one that ended"
    failures = max(_count(oracle, each) for each in ended)
    if _read_failures(pod)[0] < failures:
        return f"L4: a pod was created that does not know of {failures} failures before it"
    return ""


def _shuts_down(node: Node) -> bool:
    return any(each.type == _SHUTDOWN and each.status == "True" for each in node.status.conditions)


def _pause_after(oracle: Oracle, ended: Pod, node: Node | None) -> float:
    """The back-off after a pod; longer where a node that is not Ready ended it by its shutdown."""
    pause = min(2.0 ** (_count(oracle, ended) - 1), _MAX_BACKOFF)
    down = node is not None and node.ready != "True"
    return max(pause, _LONG_PAUSE) if down and ended.status.reason in _SHUTDOWN_REASONS else pause


def _count(oracle: Oracle, pod: Pod) -> int:
    """How many pods failed in a row, this one included; the lowest number that is consistent."""
    number, target = _read_failures(pod)
    born = seconds(pod.metadata.creation_timestamp) or 0.0
    forgotten = {target} != oracle.targets or _ended_at(pod) - born >= _BACKOFF_RESET
    return 1 if forgotten else number + 1


def _read_failures(pod: Pod) -> tuple[int, str]:
    number, _, target = pod.metadata.annotations.failures.partition("@")
    return (int(number), target) if number.isdecimal() else (0, "")


def _ended_at(pod: Pod) -> float:
    states = [each.state.terminated for each in pod.status.container_statuses]
    ends = [seconds(each.finished_at) for each in states if each and each.finished_at]
    changes = [each.last_transition_time for each in pod.status.conditions]
    ends = ends or [seconds(each) for each in changes if each is not None]
    born = seconds(pod.metadata.creation_timestamp) or 0.0
    return max(born, max((each or 0.0 for each in ends), default=0.0) + clock_lag(pod))
