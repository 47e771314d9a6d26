"""L4: no ping-pong: no pod is deleted and created again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from everynode.api.objects import Pod
from everynode.sim.checks.check import DAEMONSET_KINDS, Check
from everynode.sim.checks.possible_views import by_controller, disrupted_pod, owner_uid
from everynode.sim.history.record import Commit, WorldRecord

_MAX_TIMES: Final = 3
_WINDOW: Final = 10.0
_MAX_CREATED: Final = 8  # pods of one name by one process in that time
_Place = tuple[str, str, str]  # DaemonSet, node, revision


class NoPingPong(Check):
    """Counts how often a node gets a pod of the revision that we have just deleted there."""

    id: ClassVar[str] = "L4"
    title: ClassVar[str] = "no node is emptied and filled again without a cause outside us"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True
    observed_kinds: ClassVar[tuple[str, ...]] = ("nodes", *DAEMONSET_KINDS)

    def __init__(self, record: WorldRecord) -> None:
        super().__init__(record)
        self._taken: dict[_Place, bool] = {}
        self._again: Counter[_Place] = Counter()
        self._made: dict[tuple[str, str], tuple[float, ...]] = {}  # by process and name

    def observe(self, commit: Commit) -> None:
        """Start counting again: the write of another client can be the reason for ours."""
        if not by_controller(commit):
            self._again.clear()

    def check(self, commit: Commit) -> Iterable[str]:
        """Count pods that are created again where one was just disrupted."""
        taken = disrupted_pod(commit)
        if taken is not None:
            self._taken[_place(taken)] = True
        if commit.before is not None:
            return
        who = (commit.actor, commit.after.name)
        times = self._made[who] = (*self._made.get(who, ())[-_MAX_CREATED:], commit.time)
        if len(times) > _MAX_CREATED and times[-1] - times[0] < _WINDOW:
            yield f"{commit.after.name} was made {len(times)} times in {_WINDOW:.0f} s"
        place = _place(commit.after)
        if self._taken.pop(place, False):
            self._again[place] += 1
            if self._again[place] == _MAX_TIMES + 1:
                yield f"{place[1]} was emptied and filled with {place[2]} {_MAX_TIMES + 1} times"


def _place(pod: Pod) -> _Place:
    return (owner_uid(pod), pod.node, pod.hash)
