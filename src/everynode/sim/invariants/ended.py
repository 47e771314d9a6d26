"""S7 and L4: an ended pod goes after its successor came, which comes no sooner than R7 says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import Referee, is_seen, node_of, wants
from everynode.sim.invariants.views import Doubt, owner_uid, views
from everynode.sim.record import Commit

_LONGEST: Final = 900.0
_QUIET: Final = 1800.0
_Judge = Callable[[Referee, Pod], str]


class Ended(Invariant):
    """What becomes of nodes whose pod failed or succeeded."""

    id: ClassVar[str] = "S7"
    title: ClassVar[str] = "an ended pod goes after its successor came, and that waits"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at the deletion of an ended pod, and at what is created beside one."""
        before: Pod | None = commit.before
        after: Pod | None = commit.after
        pod = after if before is None else before
        assert pod is not None
        if owner_uid(pod) not in self.record.scene.sets:
            return
        going = after is None or after.terminating
        try:
            if before is None:
                fault = self._first_fault(commit, pod, _judge_successor)
            elif before.finished and going and not before.terminating:
                fault = self._first_fault(commit, pod, _judge_deletion)
            else:
                return
        except Doubt:
            return
        if fault:
            yield f"{fault}: {pod.name} on {node_of(pod)}"

    def _first_fault(self, commit: Commit, pod: Pod, judge: _Judge) -> str:
        assert commit.asked is not None
        first = ""
        for scene, _ in views(self.record, commit):
            ds = scene.sets.get(owner_uid(pod))
            fault = judge(Referee(scene, ds, commit.asked.now), pod) if ds is not None else ""
            if not fault:
                return ""
            first = first or fault
        return first


def _judge_deletion(referee: Referee, pod: Pod) -> str:
    """An ended pod is deleted where another has come, or none can."""
    name = node_of(pod)
    node = referee.scene.nodes.get(name)
    if node is None or not wants(referee.life(name)).runs(node) or referee.staying(name):
        return ""
    return "S7: an ended pod was deleted before its successor came"


def _judge_successor(referee: Referee, pod: Pod) -> str:
    """A pod after others that ended comes when they are over, and knows how many there were."""
    ended = [each for each in referee.pods_on(node_of(pod)) if each.finished and is_seen(each)]
    ended = [each for each in ended if each.uid != pod.uid]
    if not ended:
        return ""
    counts = [_count(referee, each) for each in ended]
    due = max(_ended_at(each) + _pause(n) for each, n in zip(ended, counts, strict=True))
    if due > referee.now:
        return f"L4: a pod was created {due - referee.now:.1f} s too soon after one that ended"
    if _noted(pod)[0] < max(counts):
        return f"L4: a pod was created that does not know of {max(counts)} failures before it"
    return ""


def _pause(count: int) -> float:
    return min(2.0 ** (count - 1), _LONGEST)


def _count(referee: Referee, pod: Pod) -> int:
    """How often pods have failed in a row, this one included; as little as can be meant."""
    number, target = _noted(pod)
    born = seconds(pod.metadata.creation_timestamp) or 0.0
    forgotten = {target} != referee.targets or _ended_at(pod) - born >= _QUIET
    return 1 if forgotten else number + 1


def _noted(pod: Pod) -> tuple[int, str]:
    number, _, target = pod.metadata.annotations.failures.partition("@")
    return (int(number), target) if number.isdigit() else (0, "")


def _ended_at(pod: Pod) -> float:
    states = [each.state.terminated for each in pod.status.container_statuses]
    ends = [seconds(each.finished_at) for each in states if each and each.finished_at]
    changes = [each.last_transition_time for each in pod.status.conditions]
    ends = ends or [seconds(each) for each in changes if each is not None]
    return max((each or 0.0 for each in ends), default=0.0)
