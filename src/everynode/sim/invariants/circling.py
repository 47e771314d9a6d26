"""L4: no ping-pong; nothing is taken, or made, again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from everynode.api.objects import Pod
from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.invariants.referee import node_of
from everynode.sim.invariants.views import by_controller, owner_uid, taken_pod
from everynode.sim.record import Commit, Record

_MOST: Final = 3
_SECONDS: Final = 10.0
_MOST_MADE: Final = 8  # pods of one name by one process in that time, whoever removes them
_Place = tuple[str, str, str]  # DaemonSet, node, revision


class Circling(Invariant):
    """Counts how often a node gets the same revision again that we have just taken from it."""

    id: ClassVar[str] = "L4"
    title: ClassVar[str] = "no node is emptied and filled again without a cause outside us"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True
    noted: ClassVar[tuple[str, ...]] = ("nodes", *SETS)

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._taken: dict[_Place, bool] = {}
        self._again: Counter[_Place] = Counter()
        self._made: dict[tuple[str, str], tuple[float, ...]] = {}  # by process and name

    def note(self, commit: Commit) -> None:
        """Whatever others do is a cause."""
        if not by_controller(commit):
            self._again.clear()

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at what we take and create."""
        taken = taken_pod(commit)
        if taken is not None:
            self._taken[_place(taken)] = True
        if commit.before is not None:
            return
        who = (commit.actor, commit.after.name)
        made = self._made[who] = (*self._made.get(who, ())[-_MOST_MADE:], commit.time)
        if len(made) > _MOST_MADE and made[-1] - made[0] < _SECONDS:
            yield f"{commit.after.name} was made {len(made)} times in {_SECONDS:.0f} s"
        place = _place(commit.after)
        if self._taken.pop(place, False):
            self._again[place] += 1
            if self._again[place] == _MOST + 1:
                yield f"{place[1]} was emptied and filled with {place[2]} {_MOST + 1} times"


def _place(pod: Pod) -> _Place:
    return (owner_uid(pod), node_of(pod), pod.hash)
