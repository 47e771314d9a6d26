"""S11: which counts a status may show, given what its writer may have known.

Every node adds its share to the counts. The shares of now are kept up to date; a status is judged
by them, and for the few nodes that have just changed by those they had a moment ago. So a status
costs what has happened, however large the fleet is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from math import inf
from operator import le, sub
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace
from sortedcontainers import SortedList

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, DaemonSetStatus
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.sim.invariants.referee import (
    Referee,
    is_seen,
    is_true,
    meaning,
    node_of,
    state_of,
    template_in,
    wants,
)
from everynode.sim.invariants.tally import available_from
from everynode.sim.invariants.views import owner_uid, pods_of
from everynode.sim.record import Commit, Record, Scene

NAMES: Final = ("wanted", "current", "misscheduled", "ready", "updated", "available")
_COUNTED: Final = ("pods", "nodes", "controllerrevisions.apps")
_THINKING: Final = 0.05  # seconds by which a decision is at most older than its request
_FAR: Final = 2000  # commits back to what was surely known; beyond that nobody is blamed
_MANY: Final = 500  # sums that are told apart

T = TypeVar("T")
Mark = tuple[str, str]  # by what a pod shows its revision: the hash, and a native one's generation
Sums = tuple[int, ...]  # in the order of the names
_Pods = Mapping[str, Pod]


class Share(NamedTuple):
    """What one node adds to the counts."""

    wanted: bool = False
    held: bool = False  # by a pod
    ready: bool = False
    mark: Mark = ("", "")
    up_from: float = inf


_NOTHING: Final = Share()


def counts_of(status: DaemonSetStatus) -> Sums:
    """The counts that a status shows."""
    return (
        status.desired,
        status.current,
        status.misscheduled,
        status.ready,
        status.updated,
        status.available,
    )


def first_of(pods: list[Pod]) -> Pod | None:
    """The pod that stands for its node: bound ones first, then the oldest.

    One that has ended and is being deleted is as good as gone.
    """
    standing = [pod for pod in pods if not (pod.terminating and pod.finished)]
    return standing[0] if len(standing) == 1 else min(standing, key=_age, default=None)


def _age(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, str(pod.metadata.creation_timestamp), pod.name


def _as_changed(pod: Pod) -> Pod:
    """The pod as it was changed in place, whatever somebody has labelled it since."""
    if not pod.metadata.annotations.inplace_state:
        return pod
    labels = {**pod.metadata.labels, keys.REVISION_HASH: state_of(pod).get("revision", "")}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


class Shares:
    """The shares of all nodes of one DaemonSet, as they are now."""

    def __init__(self, record: Record, ds: DaemonSet) -> None:
        self._record = record
        self._uid, self._least = ds.uid, ds.min_ready_seconds
        self._template = ds.template
        self._wants = wants(ds.template)
        self._is_up = Referee(Scene(0, 0.0), ds, inf).is_up
        self._followed = len(record.commits)
        self._by_node: dict[str, Share] = {}
        self._alike: Counter[tuple[bool, bool, bool, Mark]] = Counter()
        self._ups: SortedList[float] = SortedList()
        self._wanted: dict[str, bool] = {}  # of the nodes that there are
        for name, node in record.scene.nodes.items():
            self._see(node)
            self._look(name)

    def is_for(self, ds: DaemonSet) -> bool:
        """Whether the shares are those of this spec."""
        return ds.template == self._template and ds.min_ready_seconds == self._least

    def follow(self) -> None:
        """Take in what has happened since."""
        commits = self._record.commits
        changed: dict[str, None] = {}
        for commit in islice(commits, self._followed, None):
            if commit.kind == "pods":
                changed[node_of(commit.after or commit.before)] = None
            elif commit.kind == "nodes" and moves(commit):
                changed[self._see(commit.after or commit.before)] = None
        self._followed = len(commits)
        for name in changed:
            self._look(name)

    def _see(self, node: Node) -> str:
        """A node came, changed or went."""
        there = self._record.scene.nodes.get(node.name)
        self._wanted.pop(node.name, None)
        if there is not None:
            self._wanted[node.name] = self._wants.runs(there)
        return node.name

    def of(self, node: Node | None, pods: Iterable[Pod]) -> Share:
        """The share of a node with these pods."""
        return self._share(None if node is None else self._wants.runs(node), pods)

    def _share(self, wanted: bool | None, pods: Iterable[Pod]) -> Share:
        """The same; None where there is no such node."""
        if wanted is None:
            return _NOTHING
        first = first_of([pod for pod in pods if owner_uid(pod) == self._uid and is_seen(pod)])
        if first is None:
            return Share(wanted)
        if not wanted:
            return Share(held=True)
        ready = is_true(first, keys.READY)
        up = ready and self._is_up(_as_changed(first))
        up_from = available_from(first, self._least) if up else inf
        generation = first.metadata.labels.get(keys.POD_TEMPLATE_GENERATION, "")
        return Share(True, True, ready, (first.hash, generation), up_from)

    def now(self, name: str) -> Share:
        """The share of a node as it is."""
        return self._by_node.get(name, _NOTHING)

    def sums(self, at: float, is_target: Callable[[Mark], bool]) -> Sums:
        """The counts at a time of day."""
        wanted = current = misscheduled = readies = updated = 0
        for (is_wanted, held, ready, mark), times in self._alike.items():
            wanted += times * is_wanted
            current += times * (is_wanted and held)
            misscheduled += times * (held and not is_wanted)
            readies += times * ready
            updated += times * (is_wanted and held and is_target(mark))
        return wanted, current, misscheduled, readies, updated, self._ups.bisect_right(at)

    def _look(self, name: str) -> None:
        scene = self._record.scene
        share = self._share(self._wanted.get(name), pods_of(scene, name))
        before = self.now(name)
        if share == before:
            return
        self._by_node[name] = share
        self._alike[before[:4]] -= 1
        self._alike[share[:4]] += 1
        if before.up_from < inf:
            self._ups.remove(before.up_from)
        if share.up_from < inf:
            self._ups.add(share.up_from)


def concerns(commit: Commit, uid: str) -> bool:
    """Whether a pod of this DaemonSet was written, or one that was or becomes its own."""
    before, after = commit.before, commit.after
    return (after is not None and owner_uid(after) == uid) or (
        before is not None and owner_uid(before) == uid
    )


def places_of(commit: Commit) -> list[str]:
    """The nodes of a pod before and after."""
    return [node_of(pod) for pod in (commit.before, commit.after) if pod is not None]


def moves(commit: Commit) -> bool:
    """Whether a node came, went, or changed in what templates ask for."""
    before, after = commit.before, commit.after
    if before is None or after is None:
        return True
    return bool(
        before.spec.taints != after.spec.taints or before.metadata.labels != after.metadata.labels
    )


class Doubtful(Exception):
    """What was known is so old that nothing can be said against a status."""


class Past:
    """What the writer of a status may have known: how things looked until it sent the status.

    Mostly a status shows what is there, and nobody has to look back.
    """

    def __init__(self, record: Record, commit: Commit) -> None:
        assert commit.asked is not None
        self._record, self._scene = record, record.scene
        self._uid, self._sent_at = commit.after.uid, commit.asked.sent_at
        told, began = commit.asked.floors, record.terms.get(commit.actor, 0)
        # Who comes to lead lists everything before its first write.
        self._floors = {kind: max(told.get(kind, 0), began) for kind in _COUNTED}
        # The newest first; what was written after the status was sent is taken back.
        self._pods: dict[str, list[_Pods]] = {}
        self._nodes: dict[str, list[Node | None]] = {}
        self._revisions: list[ControllerRevision] = []  # that were there

    def targets(self, ds: DaemonSet) -> Iterator[str]:
        """The hashes of revisions that mean the same as the DaemonSet's template."""
        yield from _alike(self._scene.revisions.values(), ds)
        self._look_back()
        yield from _alike(self._revisions, ds)

    def shares(self, shares: Shares) -> dict[str, list[Share]]:
        """For every node that changed the shares that it may have had."""
        self._look_back()
        found = {}
        for name in dict.fromkeys((*self._pods, *self._nodes)):
            nodes = self._nodes.get(name) or [self._scene.nodes.get(name)]
            pods = self._pods.get(name) or [self._pods_on(name)]
            both = product(nodes, pods)
            found[name] = list(dict.fromkeys(shares.of(n, p.values()) for n, p in both))
        return found

    def _look_back(self) -> None:
        """Go back to what was surely known of every kind; raises Doubtful if that is too far."""
        if not self._floors:
            return
        floors, self._floors = self._floors, {}
        lowest = min(floors.values())
        for count, each in enumerate(reversed(self._record.commits)):
            if each.version <= lowest:
                return
            if count == _FAR:
                raise Doubtful
            late = each.time > self._sent_at
            if late or each.version > floors.get(each.kind, inf):
                self._undo(each, late=late)

    def _undo(self, commit: Commit, *, late: bool) -> None:
        if commit.kind == "pods":
            if concerns(commit, self._uid):
                for node in dict.fromkeys(places_of(commit)):
                    self._undo_pod(commit, node, late=late)
        elif commit.kind == "nodes":
            if moves(commit):
                name = (commit.after or commit.before).name
                states = self._nodes.setdefault(name, [self._scene.nodes.get(name)])
                _add(states, commit.before, late=late)
        elif commit.kind == "controllerrevisions.apps" and commit.before is not None:
            self._revisions.append(commit.before)

    def _undo_pod(self, commit: Commit, node: str, *, late: bool) -> None:
        states = self._pods.get(node)
        if states is None:
            states = self._pods[node] = [self._pods_on(node)]
        before, after = commit.before, commit.after
        state = {**states[-1]}
        if after is not None:
            state.pop(after.uid, None)
        if before is not None and node_of(before) == node:
            state[before.uid] = before
        _add(states, state, late=late)

    def _pods_on(self, node: str) -> _Pods:
        return {pod.uid: pod for pod in pods_of(self._scene, node)}


def _alike(revisions: Iterable[ControllerRevision], ds: DaemonSet) -> Iterator[str]:
    """The hashes of the DaemonSet's revisions that mean the same as its template."""
    wanted = meaning(ds.template)
    for each in revisions:
        owner = each.metadata.controller
        mine = owner is not None and owner.uid == ds.uid
        if mine and meaning(template_in(bytes(each.data))) == wanted:
            yield each.metadata.labels.get(keys.REVISION_HASH, "")


def _add(states: list[T], state: T, *, late: bool) -> None:
    if late:
        states.clear()
    states.append(state)


class Recount:
    """What the counts of a status may be, by a clock and by what marks the target's pods."""

    def __init__(self, shares: Shares, past: Past, *, until: float, target: Mark) -> None:
        self._shares, self._past, self._target = shares, past, target
        self._times = (until - _THINKING, until)

    def fault(self, said: Sums) -> str:
        """What is wrong with these counts; empty where somebody may have counted so."""
        if said == self._shares.sums(self._times[-1], self._is_target):
            return ""
        past = self._past.shares(self._shares)
        choices = [self._others(past), *map(self._options, past.values())]
        least, most = _suffixes(choices, min), _suffixes(choices, max)
        for name, count, low, high in zip(NAMES, said, least[0], most[0], strict=True):
            if not low <= count <= high:
                span = str(low) if low == high else f"{low} to {high}"
                return f"{count} nodes are said to be {name}, it is {span}"
        left = {said}  # what the choices that are not made yet have to add
        for options, rest, top in zip(choices, least[1:], most[1:], strict=True):
            tried = {_less(sums, option) for sums in left for option in options}
            left = {sums for sums in tried if _between(rest, sums, top)}
            if len(left) > _MANY:
                return ""
        return "" if left else f"{_named(said)} were never true together"

    def _others(self, changed: Iterable[str]) -> list[Sums]:
        """What all nodes add that did not change; some may become available just now."""
        shares = self._shares
        mine = [shares.now(name) for name in changed]
        low, high = (
            _less(shares.sums(at, self._is_target), _total(self._count(s, at) for s in mine))
            for at in self._times
        )
        return [(*low[:-1], available) for available in range(low[-1], high[-1] + 1)]

    def _options(self, shares: Iterable[Share]) -> list[Sums]:
        """What a node may add."""
        return list(dict.fromkeys(self._count(s, at) for s in shares for at in self._times))

    def _count(self, share: Share, at: float) -> Sums:
        wanted, held, ready, mark, up_from = share
        here = wanted and held
        updated = here and self._is_target(mark)
        return tuple(map(int, (wanted, here, held and not wanted, ready, updated, up_from <= at)))

    def _is_target(self, mark: Mark) -> bool:
        (hash, generation), (target, number) = mark, self._target
        return hash == target or (number != "" and generation == number)


def _suffixes(choices: list[list[Sums]], pick: Callable[[Iterable[int]], int]) -> list[Sums]:
    """The least or the most that the choices add from each of them on, and after the last."""
    found: list[Sums] = [(0,) * len(NAMES)]
    for options in reversed(choices):
        found.append(_total([found[-1], tuple(map(pick, zip(*options, strict=True)))]))
    return found[::-1]


def _total(sums: Iterable[Sums]) -> Sums:
    return tuple(map(sum, zip((0,) * len(NAMES), *sums, strict=True)))


def _less(sums: Sums, other: Sums) -> Sums:
    return tuple(map(sub, sums, other))


def _between(low: Sums, sums: Sums, high: Sums) -> bool:
    return all(map(le, low, sums)) and all(map(le, sums, high))


def _named(said: Sums) -> str:
    return ", ".join(f"{count} {name}" for count, name in zip(said, NAMES, strict=True))
