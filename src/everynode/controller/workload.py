"""One DaemonSet as the controller knows it: what was observed, and our own writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Node, Pod
from everynode.controller.queue import SOON
from everynode.controller.writes import Stage, Write
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.availability import is_ready
from everynode.decide.ledger import Ledger
from everynode.decide.patch import node_of
from everynode.decide.view import NodeView

_FIRST_DELAY = 0.5  # after a refusal; doubles with each further one
_LONGEST_DELAY = 300.0
_FIRST_CONFLICT_DELAY = 0.05  # the cache is a moment behind; it will catch up
_LONGEST_CONFLICT_DELAY = 2.0
_BRIEF = 10.0  # a pod that is gone so soon was not wanted by somebody
_LONGEST_PAUSE = 30.0  # before it is created again
_LIVE_LOOKS = 10  # at a time, for writes that are not seen
_LIVE_PAUSE = 0.5
_SLOW_START = 1  # creates at once until they are known to succeed; doubles with each success
_RESIZABLE = ("", "")
_FULL_SPEED = 1 << 20  # no limit but the burst


@dataclass(slots=True)
class Refusal:
    """Writes on a node that did not happen, one after the other."""

    count: int
    retry_at: float
    trouble: str  # what the API server said, empty for conflicts


@dataclass(slots=True)
class Made:
    """The pod that was created last on a node, and how often it did not last."""

    name: str
    lost: int
    again_at: float  # not before then, should it be gone


class Workload:
    """Observed state of one DaemonSet, by node, and the ledger that sums it up."""

    def __init__(self, ds: DaemonSet, nodes: Mapping[str, Node]) -> None:
        self.ds = ds
        self.key = ds.uid  # what identifies the workload: names come back, uids do not
        self.ledger: Ledger | None = None
        self.replan = True  # the spec or the revisions have changed since the plan was made
        self.revising = False  # writes to the revisions are under way
        self.carried: Counter[str] = Counter()  # revision hash -> own pods that carry it
        self.writes: dict[str, Write] = {}
        self.refusals: dict[str, Refusal] = {}
        self.strangers: dict[str, tuple[str, ...]] = {}
        self.unresizable: dict[str, tuple[str, str]] = {}  # node -> uid and hash of its pod
        self._made: dict[str, Made] = {}
        self.create_limit = _SLOW_START
        self.settle_at: float | None = None  # when to look live for writes that are not seen
        self._nodes = nodes
        self._pods: dict[str, tuple[Pod, ...]] = {}  # by node, there in the order of their uids
        self._dirty: dict[str, None] = {}
        # Nodes that changed without letting anybody go on: they are judged again together.
        self._quiet: dict[str, None] = {}
        self.quiet_until: float | None = None  # when that is done, at the latest

    @property
    def label(self) -> str:
        """How people name it."""
        return f"{self.ds.namespace}/{self.ds.name}"

    @property
    def starting_slowly(self) -> bool:
        """Whether more creates may be sent with every one that succeeds."""
        return self.create_limit < _FULL_SPEED

    # --- Observing -------------------------------------------------------------------------

    def pod_changed(
        self, before: Pod | None, after: Pod | None, *, freeing: bool | None = None
    ) -> None:
        """Take in a change of one own pod; None means it was not or is no longer ours.

        `freeing` is what `frees` says of it, where that is known already.
        """
        freeing = frees(before, after) if freeing is None else freeing
        marked = self._dirty if freeing or not self._is_quiet(before, after) else self._quiet
        known = False
        if before is not None:
            node = node_of(before)
            known = self._take_out(node, before.uid)
            marked[node] = None
        if after is not None:
            node = node_of(after)
            self._put_in(node, after)
            marked[node] = None
        self._recount(before if known else None, after)

    def _take_out(self, node: str, uid: str) -> bool:
        pods = self._pods.pop(node, ())
        if len(pods) == 1 and pods[0].uid == uid:
            return True  # nearly always
        rest = tuple([pod for pod in pods if pod.uid != uid])
        if rest:
            self._pods[node] = rest
        return len(rest) < len(pods)

    def _put_in(self, node: str, pod: Pod) -> None:
        beside = self._pods.get(node)
        if beside is None:
            self._pods[node] = (pod,)  # nearly always
            return
        others = [other for other in beside if other.uid != pod.uid]
        self._pods[node] = tuple(sorted((*others, pod), key=lambda each: each.uid))

    def _is_quiet(self, before: Pod | None, after: Pod | None) -> bool:
        """Whether a pod's change that lets nobody go on takes nothing from the sums either.

        So it is with a pod that ends and has not ended, and on a node that counts at its worst
        because we wrote to it, unless a pod is concerned that still serves there (surge).
        """
        if after is None:
            return False
        if before is not None and before.terminating:
            return True
        write = self.writes.get(node_of(after))
        if write is None or isinstance(write.action, PatchPod):
            return False
        touched = isinstance(write.action, DeletePod) and write.action.uid == after.uid
        return touched or before is None or not is_ready(before)

    def quieten(self, now: float) -> None:
        """Have what lets nobody go on judged soon, together with what else happens in a moment."""
        if self.quiet_until is None:
            self.quiet_until = now + SOON

    def node_changed(self, name: str) -> None:
        """A node appeared, changed in something we read, or vanished."""
        self._dirty[name] = None

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Own pods on a node, by uid."""
        return self._pods.get(node, ())

    def pods(self) -> list[Pod]:
        """All own pods, by node name and uid."""
        return [pod for node in sorted(self._pods) for pod in self._pods[node]]

    def _recount(self, before: Pod | None, after: Pod | None) -> None:
        left = before.hash if before is not None else None
        taken = after.hash if after is not None else None
        if left == taken:
            return  # as with nearly every change
        if taken is not None:
            self.carried[taken] += 1
        if left is not None:
            self.carried[left] -= 1
            if not self.carried[left]:
                del self.carried[left]

    # --- Own writes ------------------------------------------------------------------------

    def begin(self, action: PodAction, now: float) -> Write:
        """Remember a write before it is sent."""
        write = Write(action, since=now)
        self.writes[action.node] = write
        self._quiet[action.node] = None
        self.quieten(now)
        return write

    def answered(self, node: str, write: Write, *, uid: str, version: int, now: float) -> None:
        """The write was committed as this version of this pod."""
        write.stage, write.uid, write.version, write.since = Stage.ANSWERED, uid, version, now
        self.refusals.pop(node, None)
        self.strangers.pop(node, None)
        if isinstance(write.action, CreatePod):
            self.create_limit = min(self.create_limit * 2, _FULL_SPEED)
            self._note_made(node, write.action.name, now)
        self._settle_later(write)
        (self._dirty if isinstance(write.action, PatchPod) else self._quiet)[node] = None
        self.quieten(now)

    def _note_made(self, node: str, name: str, now: float) -> None:
        """Remember a pod that was created; where the same one is gone again and again, wait.

        Somebody may remove what we create, such as the garbage collector while we do not see yet
        that the DaemonSet is gone. We do not race with them.
        """
        made = self._made.get(node)
        again = made is not None and made.name == name and now < made.again_at + _BRIEF
        lost = made.lost + 1 if made is not None and again else 0
        pause = min(_FIRST_DELAY * 2.0 ** min(lost - 1, 20), _LONGEST_PAUSE) if lost else 0.0
        self._made[node] = Made(name, lost, now + pause)

    def _retry_at(self, node: str) -> float:
        refusal, made = self.refusals.get(node), self._made.get(node)
        again_at = made.again_at if made is not None and made.lost else 0.0
        return max(refusal.retry_at, again_at) if refusal is not None else again_at

    def lost(self, node: str, write: Write, *, now: float) -> None:
        """Nobody knows whether the write was committed."""
        write.stage, write.since = Stage.UNKNOWN, now
        self._settle_later(write)
        self._dirty[node] = None

    def gone(self, node: str, write: Write, *, now: float) -> None:
        """The pod is no more; until the cache shows that, the node must not count as served."""
        write.stage, write.since = Stage.GONE, now
        self._settle_later(write)
        self._dirty[node] = None

    def forget(self, node: str, write: Write) -> None:
        """The write did not happen, or what it did is known by other means."""
        if self.writes.get(node) is write:
            del self.writes[node]
        self._dirty[node] = None

    def refused(self, node: str, write: Write, *, trouble: str, now: float) -> None:
        """The server said no; try again later, and later still the next time."""
        self.forget(node, write)
        count = self.refusals[node].count + 1 if node in self.refusals else 1
        first, longest = (
            (_FIRST_DELAY, _LONGEST_DELAY)
            if trouble
            else (_FIRST_CONFLICT_DELAY, _LONGEST_CONFLICT_DELAY)
        )
        delay = min(first * 2 ** min(count - 1, 20), longest)
        self.refusals[node] = Refusal(count, now + delay, trouble)
        if trouble and isinstance(write.action, CreatePod):
            self.create_limit = _SLOW_START

    def refused_resize(self, action: PatchPod) -> None:
        """The server will not resize this pod, however often it is asked."""
        for pod in self.pods_on(action.node):
            if pod.uid == action.uid:
                self.unresizable[action.node] = (pod.uid, pod.hash)

    # --- Deciding --------------------------------------------------------------------------

    def refresh(self, cache_version: int, now: float) -> None:
        """Tell the ledger of every node that changed; forget the writes that are seen."""
        assert self.ledger is not None
        if self.quiet_until is not None and now >= self.quiet_until:
            self._dirty.update(self._quiet)
            self._quiet.clear()
            self.quiet_until = None
        for node in self._dirty:
            write = self.writes.get(node)
            if write is not None and write.seen(self.pods_on(node), cache_version):
                del self.writes[node]
            if node in self._nodes or node in self._pods or node in self.writes:
                self.ledger.observe(self.view(node))
            else:
                self.refusals.pop(node, None)
                self.strangers.pop(node, None)
                self._made.pop(node, None)
                self.unresizable.pop(node, None)
                self.ledger.forget(node)
            self._quiet.pop(node, None)
        self._dirty.clear()
        if not self.writes:
            self.settle_at = None  # all are seen

    def observe_everything(self) -> None:
        """Have every node told to the ledger anew."""
        self._dirty = dict.fromkeys([*self._nodes, *self._pods, *self.writes])

    def view(self, node: str) -> NodeView:
        """The node as the decision sees it."""
        write = self.writes.get(node)
        refusal = self.refusals.get(node)
        return NodeView(
            name=node,
            node=self._nodes.get(node),
            pods=self.pods_on(node),
            writes=(write.view(),) if write is not None else (),
            retry_at=self._retry_at(node),
            trouble=refusal.trouble if refusal else "",
            strangers=self.strangers.get(node, ()),
            unresizable=self.unresizable.get(node, _RESIZABLE),
        )

    def overdue(self, now: float) -> list[tuple[str, Write]]:
        """Writes to look for live, by node name: they should have been seen by now.

        A few at a time, and each again only when its time has come once more.
        """
        if self.settle_at is None or now < self.settle_at:
            return []
        waiting = [(n, w) for n, w in sorted(self.writes.items()) if w.stage is not Stage.SENT]
        late = [(n, w) for n, w in waiting if w.settle_at() <= now][:_LIVE_LOOKS]
        for _, write in late:
            write.since = now
        times = (max(write.settle_at(), now + _LIVE_PAUSE) for _, write in waiting)
        self.settle_at = min(times, default=None)
        return late

    def _settle_later(self, write: Write) -> None:
        if self.settle_at is None or write.settle_at() < self.settle_at:
            self.settle_at = write.settle_at()


def frees(before: Pod | None, after: Pod | None) -> bool:
    """Whether a pod's change may let somebody go on: it is gone, or has become Ready.

    Most changes do not: a pod of ours is seen, bound, started, or has begun to end.
    """
    if after is None:
        return True
    return is_ready(after) and (before is None or not is_ready(before))
