"""S11: which counts a status may show, given what its writer may have known.

A status is right if its writer could have counted so. The writer's caches lag by different amounts
for each kind, so that there are many states it may have seen; they are not enumerated. Each node
adds its own share (`NodeShare`) to the sums, independently of the others:

1. `CurrentCounts` keeps the counts of all nodes as they are now, updated with every commit. If the
   status equals their sum, it is right. This is nearly always so.
2. Otherwise `WriterKnowledge` walks the commits back to what the writer surely knew, and collects
   for every node that changed since the counts it may have had.
3. `Recount` asks whether one choice per changed node adds up to the status: unchanged nodes give
   one fixed sum (a range for `available`, while minReadySeconds passes), and the choices are
   subtracted node by node. Sums that the remaining nodes cannot reach any more are dropped.

Example: three nodes are desired, and the status shows `current 2, ready 2`. Node a did not change:
it adds (current 1, ready 1), which leaves (1, 1). Node b got its pod just now: it may add (0, 0)
or (1, 0), which leaves (1, 1) or (0, 1). Node c became Ready just now: (1, 0) or (1, 1). From
(1, 1) node c can subtract (1, 1), which leaves (0, 0): the status is right. Had it shown
`current 1, ready 2`, every path would leave something: "were never true together".

So checking a status costs as much as has changed, however many nodes there are.
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
from everynode.sim.checks.fast_oracle import available_from
from everynode.sim.checks.inplace_progress import inplace_state_of
from everynode.sim.checks.oracle import (
    Oracle,
    canonical_template,
    is_true,
    is_watched,
    node_fit,
    revision_template,
)
from everynode.sim.checks.possible_views import owner_uid, pods_on_node
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.record import Commit, WorldRecord

COUNT_NAMES: Final = ("wanted", "current", "misscheduled", "ready", "updated", "available")
COUNTED: Final = ("pods", "nodes", "controllerrevisions.apps")
# A decision is at most this many seconds older than its request.
_MAX_DECISION_SECONDS: Final = 0.05
# Commits to go back at most; if the known state is older, the status counts as right.
_MAX_COMMITS: Final = 2000
_MAX_SUMS: Final = 500  # distinct sums that are kept

T = TypeVar("T")
# How a pod shows its revision: the hash, and for native DaemonSets the generation.
RevisionMark = tuple[str, str]
Sums = tuple[int, ...]  # in the order of the count names
_Pods = Mapping[str, Pod]


class NodeShare(NamedTuple):
    """What one node adds to the counts."""

    wanted: bool = False
    held: bool = False  # by a pod
    ready: bool = False
    mark: RevisionMark = ("", "")
    up_from: float = inf


_NO_SHARE: Final = NodeShare()


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
    """The pod that represents its node in the counts: bound ones first, then the oldest.

    Of two pods of one second the Ready one counts, then the first by name. A finished
    pod that is being deleted is left out.
    """
    standing = [pod for pod in pods if not (pod.terminating and pod.finished)]
    return standing[0] if len(standing) == 1 else min(standing, key=_age, default=None)


def _age(pod: Pod) -> tuple[bool, str, bool, str]:
    created = str(pod.metadata.creation_timestamp)
    return not pod.spec.node_name, created, not is_true(pod, keys.READY), pod.name


def _as_changed(pod: Pod) -> Pod:
    """The pod with the hash of its in-place update, even if a user has changed the label since."""
    if not pod.metadata.annotations.inplace_state:
        return pod
    labels = {**pod.metadata.labels, keys.REVISION_HASH: inplace_state_of(pod).get("revision", "")}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


class CurrentCounts:
    """The counts that each node of one DaemonSet adds now (its share)."""

    def __init__(self, record: WorldRecord, ds: DaemonSet) -> None:
        self._record = record
        self._uid, self._least = ds.uid, ds.min_ready_seconds
        self._template = ds.template
        self._wants = node_fit(ds.template)
        self._is_up = Oracle(ClusterState(0, 0.0), ds, inf).is_available
        self._followed = len(record.commits)
        self._by_node: dict[str, NodeShare] = {}
        self._alike: Counter[tuple[bool, bool, bool, RevisionMark]] = Counter()
        self._ups: SortedList[float] = SortedList()
        self._wanted: dict[str, bool] = {}  # by existing node
        for name, node in record.cluster.nodes.items():
            self._see(node)
            self._look(name)

    def is_for(self, ds: DaemonSet) -> bool:
        """Whether the shares were computed for this spec."""
        return ds.template == self._template and ds.min_ready_seconds == self._least

    def follow(self) -> None:
        """Apply the commits since the last call."""
        commits = self._record.commits
        changed: dict[str, None] = {}
        for commit in islice(commits, self._followed, None):
            if commit.kind == "pods":
                changed[(commit.after or commit.before).node] = None
            elif commit.kind == "nodes" and changes_fit(commit):
                changed[self._see(commit.after or commit.before)] = None
        self._followed = len(commits)
        for name in changed:
            self._look(name)

    def _see(self, node: Node) -> str:
        """Update a node that was created, changed or deleted."""
        there = self._record.cluster.nodes.get(node.name)
        self._wanted.pop(node.name, None)
        if there is not None:
            self._wanted[node.name] = self._wants.should_run(there)
        return node.name

    def of(self, node: Node | None, pods: Iterable[Pod]) -> NodeShare:
        """The share of a node with these pods."""
        return self._share(None if node is None else self._wants.should_run(node), pods)

    def _share(self, wanted: bool | None, pods: Iterable[Pod]) -> NodeShare:
        """The share of a node; `wanted` is None where the node does not exist."""
        if wanted is None:
            return _NO_SHARE
        first = first_of([pod for pod in pods if owner_uid(pod) == self._uid and is_watched(pod)])
        if first is None:
            return NodeShare(wanted)
        if not wanted:
            return NodeShare(held=True)
        ready = is_true(first, keys.READY)
        up = ready and self._is_up(_as_changed(first))
        up_from = available_from(first, self._least) if up else inf
        generation = first.metadata.labels.get(keys.POD_TEMPLATE_GENERATION, "")
        return NodeShare(True, True, ready, (first.hash, generation), up_from)

    def now(self, name: str) -> NodeShare:
        """The current share of a node."""
        return self._by_node.get(name, _NO_SHARE)

    @property
    def latest_up(self) -> float:
        """When the last pod that is going to be available becomes so, by its timestamps."""
        return self._ups[-1] if self._ups else -inf

    def sums(self, at: float, is_target: Callable[[RevisionMark], bool]) -> Sums:
        """The counts at a wall-clock time."""
        wanted = current = misscheduled = readies = updated = 0
        for (is_wanted, held, ready, mark), times in self._alike.items():
            wanted += times * is_wanted
            current += times * (is_wanted and held)
            misscheduled += times * (held and not is_wanted)
            readies += times * ready
            updated += times * (is_wanted and held and is_target(mark))
        return wanted, current, misscheduled, readies, updated, self._ups.bisect_right(at)

    def _look(self, name: str) -> None:
        cluster = self._record.cluster
        share = self._share(self._wanted.get(name), pods_on_node(cluster, name))
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


def writes_pod_of(commit: Commit, uid: str) -> bool:
    """Whether the commit wrote a pod that belongs to this DaemonSet before or after it."""
    before, after = commit.before, commit.after
    return (after is not None and owner_uid(after) == uid) or (
        before is not None and owner_uid(before) == uid
    )


def nodes_of(commit: Commit) -> list[str]:
    """The nodes of a pod before and after."""
    return [pod.node for pod in (commit.before, commit.after) if pod is not None]


def changes_fit(commit: Commit) -> bool:
    """Whether a node was created, deleted, or changed in fields that decide which templates fit."""
    before, after = commit.before, commit.after
    if before is None or after is None:
        return True
    return bool(
        before.spec.taints != after.spec.taints or before.metadata.labels != after.metadata.labels
    )


class KnowledgeTooOld(Exception):
    """The writer's known state is too old to check a status against it."""


class WriterKnowledge:
    """The states that the writer of a status may have known when it sent the status.

    Most statuses equal the current counts; then nothing is computed here.
    """

    def __init__(self, record: WorldRecord, commit: Commit) -> None:
        assert commit.cause is not None
        self._record, self._cluster = record, record.cluster
        self._uid, self._sent_at = commit.after.uid, commit.cause.sent_at
        known, began = commit.cause.known_versions, record.leader_since.get(commit.actor, 0)
        # A new leader lists everything before its first write.
        self._known_versions = {kind: max(known.get(kind, 0), began) for kind in COUNTED}
        # Newest first; changes made after the status was sent are undone.
        self._pods: dict[str, list[_Pods]] = {}
        self._nodes: dict[str, list[Node | None]] = {}
        self._revisions: list[ControllerRevision] = []  # that existed at some time in between

    def targets(self, ds: DaemonSet) -> Iterator[str]:
        """The hashes of revisions whose template is equivalent to the DaemonSet's."""
        yield from _target_hashes(self._cluster.revisions.values(), ds)
        self._look_back()
        yield from _target_hashes(self._revisions, ds)

    def shares(self, shares: CurrentCounts) -> dict[str, list[NodeShare]]:
        """The possible shares of every node that changed."""
        self._look_back()
        found = {}
        for name in dict.fromkeys((*self._pods, *self._nodes)):
            nodes = self._nodes.get(name) or [self._cluster.nodes.get(name)]
            pods = self._pods.get(name) or [self._pods_on(name)]
            both = product(nodes, pods)
            found[name] = list(dict.fromkeys(shares.of(n, p.values()) for n, p in both))
        return found

    def _look_back(self) -> None:
        """Walk back to the versions that were certainly known; may raise KnowledgeTooOld."""
        if not self._known_versions:
            return
        known_versions, self._known_versions = self._known_versions, {}
        lowest = min(known_versions.values())
        for count, each in enumerate(reversed(self._record.commits)):
            if each.version <= lowest:
                return
            if count == _MAX_COMMITS:
                raise KnowledgeTooOld
            late = each.time > self._sent_at
            if late or each.version > known_versions.get(each.kind, inf):
                self._undo(each, late=late)

    def _undo(self, commit: Commit, *, late: bool) -> None:
        if commit.kind == "pods":
            if writes_pod_of(commit, self._uid):
                for node in dict.fromkeys(nodes_of(commit)):
                    self._undo_pod(commit, node, late=late)
        elif commit.kind == "nodes":
            if changes_fit(commit):
                name = (commit.after or commit.before).name
                states = self._nodes.setdefault(name, [self._cluster.nodes.get(name)])
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
        if before is not None and before.node == node:
            state[before.uid] = before
        _add(states, state, late=late)

    def _pods_on(self, node: str) -> _Pods:
        return {pod.uid: pod for pod in pods_on_node(self._cluster, node)}


def _target_hashes(revisions: Iterable[ControllerRevision], ds: DaemonSet) -> Iterator[str]:
    """The hashes of the DaemonSet's revisions whose template is equivalent to its own."""
    wanted = canonical_template(ds.template)
    for each in revisions:
        owner = each.metadata.controller
        mine = owner is not None and owner.uid == ds.uid
        if mine and canonical_template(revision_template(bytes(each.data))) == wanted:
            yield each.metadata.labels.get(keys.REVISION_HASH, "")


def _add(states: list[T], state: T, *, late: bool) -> None:
    if late:
        states.clear()
    states.append(state)


class Recount:
    """The possible counts of a status, for one clock and one way to recognise target pods."""

    def __init__(
        self, shares: CurrentCounts, past: WriterKnowledge, *, until: float, target: RevisionMark
    ) -> None:
        self._shares, self._past, self._target = shares, past, target
        self._times = (until - _MAX_DECISION_SECONDS, until)

    def fault(self, counts: Sums) -> str:
        """What is wrong with these counts; empty if the writer may have counted them."""
        if counts == self._shares.sums(self._times[-1], self._is_target):
            return ""
        past = self._past.shares(self._shares)
        choices = [self._others(past), *map(self._options, past.values())]
        least, most = _suffixes(choices, min), _suffixes(choices, max)
        for name, count, low, high in zip(COUNT_NAMES, counts, least[0], most[0], strict=True):
            if not low <= count <= high:
                span = str(low) if low == high else f"{low} to {high}"
                return f"{count} nodes are {name} in the status, it is {span}"
        left = {counts}  # what the remaining nodes have to add
        for options, rest, top in zip(choices, least[1:], most[1:], strict=True):
            tried = {_less(sums, option) for sums in left for option in options}
            left = {sums for sums in tried if _between(rest, sums, top)}
            if len(left) > _MAX_SUMS:
                return ""
        return "" if left else f"{_describe_counts(counts)} were never true together"

    def _others(self, changed: Iterable[str]) -> list[Sums]:
        """The possible sums of all unchanged nodes; some pods may become available just now."""
        shares = self._shares
        mine = [shares.now(name) for name in changed]
        low, high = (
            _less(shares.sums(at, self._is_target), _total(self._count(s, at) for s in mine))
            for at in self._times
        )
        return [(*low[:-1], available) for available in range(low[-1], high[-1] + 1)]

    def _options(self, shares: Iterable[NodeShare]) -> list[Sums]:
        """The counts that one changed node may add."""
        return list(dict.fromkeys(self._count(s, at) for s in shares for at in self._times))

    def _count(self, share: NodeShare, at: float) -> Sums:
        wanted, held, ready, mark, up_from = share
        here = wanted and held
        updated = here and self._is_target(mark)
        return tuple(map(int, (wanted, here, held and not wanted, ready, updated, up_from <= at)))

    def _is_target(self, mark: RevisionMark) -> bool:
        (hash, generation), (target, number) = mark, self._target
        return hash == target or (number != "" and generation == number)


def _suffixes(choices: list[list[Sums]], pick: Callable[[Iterable[int]], int]) -> list[Sums]:
    """By position, the minimum or maximum that the choices from there on add; 0 at the end."""
    found: list[Sums] = [(0,) * len(COUNT_NAMES)]
    for options in reversed(choices):
        found.append(_total([found[-1], tuple(map(pick, zip(*options, strict=True)))]))
    return found[::-1]


def _total(sums: Iterable[Sums]) -> Sums:
    return tuple(map(sum, zip((0,) * len(COUNT_NAMES), *sums, strict=True)))


def _less(sums: Sums, other: Sums) -> Sums:
    return tuple(map(sub, sums, other))


def _between(low: Sums, sums: Sums, high: Sums) -> bool:
    return all(map(le, low, sums)) and all(map(le, sums, high))


def _describe_counts(counts: Sums) -> str:
    return ", ".join(f"{count} {name}" for count, name in zip(counts, COUNT_NAMES, strict=True))
