"""DaemonSetState: what the controller knows of one DaemonSet.

Its pods by node, our pending writes, refused writes, and the ledger that evaluates the nodes.
It alone changes its flags; other modules call its methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from math import inf

from everynode.api.daemonset import DaemonSet, FieldError
from everynode.api.objects import Node, Pod
from everynode.backoff import Backoff
from everynode.controller.pending_writes import PendingWrite, WriteStage, take_overdue
from everynode.controller.retries import Failures, RecreateBackoff, note_created
from everynode.controller.scheduling import ChangedNodes, can_defer, unblocks
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.fleet.conditions import REFUSED
from everynode.decide.fleet.verification import NO_VERDICT
from everynode.decide.ledger import Ledger
from everynode.decide.node.clock_skew import FutureTimes, effective_time, has_future_time, pod_times
from everynode.decide.node.room import Room
from everynode.decide.node.steps import to_own_write
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView

_REFUSED = Backoff(first=0.5, longest=300.0)  # after the API server refused a write
_CONFLICT = Backoff(first=0.05, longest=2.0)  # the cache is slightly behind and will catch up
_RECREATE = Backoff(first=0.5, longest=30.0)  # between creates of a pod that vanishes each time
_LASTING = 10.0  # seconds; a pod that existed for longer did not vanish
_SLOW_START = 1  # concurrent creates until one succeeds; doubles with each success
_FULL_SPEED = 1 << 20  # no limit but the burst
_RESIZABLE = ("", "")


class DaemonSetState:
    """Observed state of one DaemonSet, by node, and the ledger that evaluates it."""

    def __init__(self, ds: DaemonSet, nodes: Mapping[str, Node]) -> None:
        self.ds = ds
        self.key = ds.uid  # a name can be used again, a uid cannot
        self.owner_key = owner_key(ds.namespace, ds.uid)  # the caches' index of owned objects
        self.ledger: Ledger | None = None
        self.plan_outdated = True  # the spec or the revisions changed since the plan was made
        self.writing_revisions = False
        self.revision_counts: Counter[str] = Counter()  # revision hash -> number of own pods
        self.writes: dict[str, PendingWrite] = {}  # by node, at most one each
        self.refusals: dict[str, Failures] = {}  # by node
        self.name_holders: dict[str, tuple[str, ...]] = {}  # node -> uids of pods with our name
        self.unadopted: dict[str, str] = {}  # node -> why its orphan cannot be adopted
        self._troubles: dict[str, FieldError] = {}  # by what is refused
        self.create_limit = _SLOW_START
        self.verdict = NO_VERDICT  # on the dry run of the target's pod
        self.verifying = False  # such a dry run is under way
        self.observing: set[str] = set()  # nodes whose room is being observed
        self._rooms: dict[str, Room] = {}  # by node, until its pod is taken
        self.verify_at: float | None = None  # when to read the pods of writes that are not seen
        self.changed = ChangedNodes()
        self._unresizable: dict[str, tuple[str, str]] = {}  # node -> uid and hash of its pod
        self._recreated: dict[str, RecreateBackoff] = {}  # by node
        self._emptied_sick: set[str] = set()  # nodes whose sick pod we deleted for the update
        self._nodes = nodes
        self._pods: dict[str, tuple[Pod, ...]] = {}  # by node, ordered by uid
        # The last own pod of nodes that have none, with the uid of the node. The one thing that a
        # restart loses and that matters (docs/rules.md#law-3); at most one entry for each node.
        self._last_pods: dict[str, tuple[str, Pod]] = {}
        # By node: times that were in the future when first seen, and when that was.
        self._ahead: dict[str, FutureTimes] = {}
        self._unreported_ahead: dict[str, float] = {}  # node -> seconds, not yet reported

    @property
    def label(self) -> str:
        """`namespace/name`, for log lines."""
        return f"{self.ds.namespace}/{self.ds.name}"

    @property
    def slow_start(self) -> bool:
        """Whether the number of concurrent creates is still limited."""
        return self.create_limit < _FULL_SPEED

    @property
    def updating(self) -> bool:
        """Whether nodes are being updated."""
        return self.ledger is not None and self.ledger.progressing > 0

    # --- The plan ----------------------------------------------------------------------------

    def daemonset_changed(self, ds: DaemonSet) -> bool:
        """Take in the DaemonSet as it is now; return whether its plan is outdated by that."""
        outdated = changes_plan(self.ds, ds)
        self.ds = ds
        if outdated:
            self.take_back_writes()
        self.plan_outdated = self.plan_outdated or outdated
        return outdated

    def invalidate_plan(self) -> None:
        """Have the plan made again: a revision changed."""
        self.plan_outdated = True

    def set_plan(self, plan: Plan) -> None:
        """Decide by this plan from now on."""
        self.plan_outdated = False
        if self.ledger is None:
            self.ledger = Ledger(plan)
            self.evaluate_all()
        else:
            self.ledger.set_plan(plan)

    def discard_ledger(self) -> None:
        """Start over after a reconcile that failed half-way."""
        self.ledger = None
        self.plan_outdated = True

    def revision_write_started(self) -> None:
        """Make no plan until the write is finished."""
        self.writing_revisions = True

    def revision_write_finished(self) -> None:
        """Make the plan again, from the revisions as they are now."""
        self.writing_revisions = False
        self.plan_outdated = True

    # --- Pods and nodes ----------------------------------------------------------------------

    def pod_changed(
        self, before: Pod | None, after: Pod | None, *, unblocking: bool | None = None
    ) -> None:
        """Take in a change of an own pod; None where the pod was not or is no longer ours.

        `unblocking` is the result of `unblocks`, where the caller has it already.
        """
        if unblocking is None:
            unblocking = unblocks(before, after)
        deferred = not unblocking and (
            after is not None and can_defer(before, after, self.writes.get(after.node))
        )
        mark = self.changed.defer if deferred else self.changed.mark
        known = False
        if before is not None:
            node = before.node
            known = self._remove_pod(node, before.uid)
            if known and after is None:
                self._note_last_pod(node, before)
            mark(node)
        if after is not None:
            node = after.node
            self._add_pod(node, after)
            mark(node)
            if before is None:
                self._emptied_sick.discard(node)
        self._count_revisions(before if known else None, after)

    def _remove_pod(self, node: str, uid: str) -> bool:
        pods = self._pods.pop(node, ())
        if len(pods) == 1 and pods[0].uid == uid:
            return True  # the common case
        rest = tuple([pod for pod in pods if pod.uid != uid])
        if rest:
            self._pods[node] = rest
        return len(rest) < len(pods)

    def _note_last_pod(self, node: str, pod: Pod) -> None:
        """Remember the pod that a node had last, while the node exists and has no other (R3)."""
        there = self._nodes.get(node)
        if there is not None and node not in self._pods:
            self._last_pods[node] = there.metadata.uid, pod

    def _last_pod_of(self, node: str) -> Pod | None:
        """Return the last pod of an empty node; None if the node was replaced since."""
        if node not in self._last_pods:
            return None  # the common case
        uid, pod = self._last_pods[node]
        there = self._nodes.get(node)
        return pod if there is not None and there.metadata.uid == uid else None

    def keep_last_pods(self, before: DaemonSetState) -> None:
        """Remember the last pods that the state of an earlier term knows, of nodes still empty."""
        for node in sorted(before._last_pods):
            last = before._last_pod_of(node)
            if last is not None and node not in self._pods:
                self._note_last_pod(node, last)

    def _add_pod(self, node: str, pod: Pod) -> None:
        self._last_pods.pop(node, None)
        present = self._pods.get(node)
        if present is None:
            self._pods[node] = (pod,)  # the common case
            return
        others = [other for other in present if other.uid != pod.uid]
        self._pods[node] = tuple(sorted((*others, pod), key=lambda each: each.uid))

    def _count_revisions(self, before: Pod | None, after: Pod | None) -> None:
        old = before.hash if before is not None else None
        new = after.hash if after is not None else None
        if old == new:
            return  # the common case
        if new is not None:
            self.revision_counts[new] += 1
        if old is not None:
            self.revision_counts[old] -= 1
            if not self.revision_counts[old]:
                del self.revision_counts[old]

    def node_changed(self, name: str, *, gone: bool = False) -> None:
        """A node was added, deleted, or changed in a field that we read."""
        if gone:
            self._last_pods.pop(name, None)
        self.changed.mark(name)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Own pods on a node, ordered by uid."""
        return self._pods.get(node, ())

    def pods(self) -> list[Pod]:
        """All own pods, ordered by node name and uid."""
        return [pod for node in sorted(self._pods) for pod in self._pods[node]]

    # --- Pending writes ----------------------------------------------------------------------

    def begin_write(self, action: PodAction, now: float) -> PendingWrite:
        """Record a write before it is sent."""
        write = PendingWrite(action, since=now)
        self.writes[action.node] = write
        self._rooms.pop(action.node, None)
        self.changed.defer(action.node)
        self.changed.start_deferral(now)
        return write

    def start_write(self, node: str, now: float) -> PendingWrite | None:
        """Return the write of the node to send now; one that waited for long is decided again."""
        write = self.writes.get(node)
        if write is None or write.stage is not WriteStage.QUEUED:
            return None
        if write.is_outdated(now):
            self.drop_write(node, write)
            return None
        write.stage = WriteStage.SENT
        return write

    def take_back_writes(self) -> None:
        """Drop the writes that were not sent: what they were decided by has changed."""
        for node, write in list(self.writes.items()):
            if write.stage is WriteStage.QUEUED:
                self.drop_write(node, write)

    def write_committed(
        self, node: str, write: PendingWrite, *, uid: str, version: int, now: float
    ) -> None:
        """The write was committed as this version of this pod."""
        write.stage, write.uid, write.version, write.since = WriteStage.ANSWERED, uid, version, now
        self.refusals.pop(node, None)
        self.name_holders.pop(node, None)
        if isinstance(write.action, CreatePod):
            self.create_limit = min(self.create_limit * 2, _FULL_SPEED)
            self._recreated[node] = note_created(
                self._recreated.get(node),
                write.action.name,
                now,
                backoff=_RECREATE,
                lasting=_LASTING,
            )
        self._verify_later(write)
        if isinstance(write.action, PatchPod):
            self.changed.mark(node)
        else:
            self.changed.defer(node)
        self.changed.start_deferral(now)

    def write_outcome_unknown(self, node: str, write: PendingWrite, *, now: float) -> None:
        """There was no response: the write may or may not have been committed."""
        write.stage, write.since = WriteStage.UNKNOWN, now
        self._verify_later(write)
        self.changed.mark(node)

    def pod_is_gone(self, node: str, write: PendingWrite, *, now: float) -> None:
        """The pod does not exist; until the cache shows that, it must not count as available."""
        write.stage, write.since = WriteStage.GONE, now
        self._verify_later(write)
        self.changed.mark(node)

    def drop_write(self, node: str, write: PendingWrite) -> None:
        """The write was not committed, or its effect is known otherwise."""
        if self.writes.get(node) is write:
            del self.writes[node]
        self.changed.mark(node)

    def write_refused(self, node: str, write: PendingWrite, *, message: str, now: float) -> None:
        """The API server refused the write: retry with back-off.

        The message is shown to users; it is empty for conflicts, which end by themselves.
        """
        self.drop_write(node, write)
        backoff = _REFUSED if message else _CONFLICT
        self.refusals.setdefault(node, Failures()).add(now, backoff, message=message)
        if message and isinstance(write.action, CreatePod):
            self.create_limit = _SLOW_START

    def resize_refused(self, action: PatchPod) -> None:
        """The API server will never resize this pod like this."""
        for pod in self.pods_on(action.node):
            if pod.uid == action.uid:
                self._unresizable[action.node] = (pod.uid, pod.hash)

    def name_taken(self, node: str, write: PendingWrite, *, holders: tuple[str, ...]) -> None:
        """Other pods (`holders`, by uid) have our names: the next create takes another name."""
        self.name_holders[node] = holders
        self.drop_write(node, write)

    # --- The room of the nodes -------------------------------------------------------------------

    def room_observed(self, node: str, room: Room) -> None:
        """This is what the node can allocate and what its pods request."""
        self._rooms[node] = room
        self.changed.mark(node)

    def room(self, node: str) -> Room | None:
        """Return what was last observed of the node's room, since a pod was written there."""
        return self._rooms.get(node)

    def is_replacing_pod(self, node: str) -> bool:
        """Whether a pod of the node is being replaced: its successor is not bound yet."""
        return (
            node in self.writes
            or node in self._last_pods
            or any(pod.terminating or not pod.spec.node_name for pod in self.pods_on(node))
        )

    # --- What is refused beside the writes of the nodes ------------------------------------------

    def orphans_refused(self, refused: Mapping[str, str]) -> None:
        """Nothing is written on these nodes: a pod there should be ours and cannot be adopted."""
        changed = {*refused.items()} ^ {*self.unadopted.items()}
        self.unadopted = dict(refused)
        for node, _ in sorted(changed):
            self.changed.mark(node)

    def set_trouble(self, what: str, message: str) -> bool:
        """Name in the condition what is refused; an empty message ends it. Return if it changed."""
        before = self._troubles.pop(what, None)
        if message:
            self._troubles[what] = FieldError(what, message, REFUSED)
        return self._troubles.get(what) != before

    @property
    def troubles(self) -> tuple[FieldError, ...]:
        """What is refused, for the condition."""
        return tuple(self._troubles[what] for what in sorted(self._troubles))

    def overdue_writes(self, now: float) -> list[tuple[str, PendingWrite]]:
        """Return writes that the cache should show by now, by node name; their pods are read."""
        if self.verify_at is None or now < self.verify_at:
            return []
        late, self.verify_at = take_overdue(self.writes, now)
        return late

    def _verify_later(self, write: PendingWrite) -> None:
        if self.verify_at is None or write.verify_at() < self.verify_at:
            self.verify_at = write.verify_at()

    # --- Input of the ledger -------------------------------------------------------------------

    def refresh_ledger(self, cache_version: int, now: float, *, lost: float = 0.0) -> None:
        """Show the ledger every node that changed; drop the pending writes that are seen.

        `lost`: what our clock has lost, of which `clock_set_back` will tell later.
        """
        assert self.ledger is not None
        changed = self.changed.take(now)
        for node in changed:
            self._note_future_times(node, now, now + lost)
            write = self.writes.get(node)
            if write is not None and write.seen(self.pods_on(node), cache_version):
                del self.writes[node]
                if isinstance(write.action, DeletePod) and write.action.sick:
                    self._emptied_sick.add(node)
            if node in self._nodes or node in self._pods or node in self.writes:
                self.ledger.observe(self.view(node))
            else:
                self._forget_node(node)
                self.ledger.forget(node)
        if not self.writes:
            self.verify_at = None

    def _forget_node(self, node: str) -> None:
        self.refusals.pop(node, None)
        self.name_holders.pop(node, None)
        self._recreated.pop(node, None)
        self._unresizable.pop(node, None)
        self._ahead.pop(node, None)
        self._last_pods.pop(node, None)
        self._rooms.pop(node, None)
        self._emptied_sick.discard(node)

    def evaluate_all(self) -> None:
        """Have every node evaluated again."""
        self.changed.mark_all([*self._nodes, *self._pods, *self.writes])

    def view(self, node: str) -> NodeView:
        """The node as the decision sees it."""
        write = self.writes.get(node)
        refusal = self.refusals.get(node)
        unadopted = self.unadopted.get(node, "")
        return NodeView(
            name=node,
            node=self._nodes.get(node),
            pods=self.pods_on(node),
            last_pod=self._last_pod_of(node),
            writes=(to_own_write(write.action),) if write is not None else (),
            retry_at=inf if unadopted else self._retry_at(node),
            trouble=unadopted or (refusal.message if refusal else ""),
            name_holders=self.name_holders.get(node, ()),
            unresizable=self._unresizable.get(node, _RESIZABLE),
            emptied_sick=node in self._emptied_sick,
            ahead=self._ahead.get(node, ()),
            room=self._rooms.get(node),
        )

    def _retry_at(self, node: str) -> float:
        refusal, recreated = self.refusals.get(node), self._recreated.get(node)
        again_at = recreated.retry_at if recreated is not None and recreated.vanished else 0.0
        return max(refusal.retry_at, again_at) if refusal is not None else again_at

    # --- Clocks that are wrong -----------------------------------------------------------------

    def _note_future_times(self, node: str, now: float, seen_at: float) -> None:
        """Record when a time that is in the future was first seen: it counts from then."""
        known, pods = self._ahead.get(node, ()), self.pods_on(node)
        moment = None if known else datetime.fromtimestamp(now, UTC)
        if moment and not any(has_future_time(pod, moment) for pod in pods):
            return  # the common case
        times = sorted({time for pod in pods for time in pod_times(pod)})
        seen = dict(known)
        found = tuple((t, seen.get(t, seen_at)) for t in times if t > now or t in seen)
        new = [time - now for time, _ in found if time not in seen]
        if new:
            self._unreported_ahead[node] = max(new)
        if found:
            self._ahead[node] = found
        else:
            self._ahead.pop(node, None)

    def take_unreported_ahead(self) -> dict[str, float]:
        """Return, by node, how far times of pods are in the future, once for each such time."""
        taken, self._unreported_ahead = self._unreported_ahead, {}
        return taken

    def clock_set_back(self, by: float, now: float) -> None:
        """Our clock was set back, to `now`: keep the remaining waits as they were.

        Times of pods that are in the future only because of that keep their age.
        """
        for refusal in self.refusals.values():
            refusal.clock_set_back(by)
        for recreated in self._recreated.values():
            recreated.retry_at -= by
        for write in self.writes.values():
            write.since -= by
        if self.verify_at is not None:
            self.verify_at -= by
        self._rooms.clear()
        self.changed.clock_set_back(by)
        for node, pods in self._pods.items():
            known = self._ahead.get(node, ())
            seen = {time for time, _ in known}
            times = sorted({time for pod in pods for time in pod_times(pod)})
            found = tuple((t, effective_time(t, known) - by) for t in times if t > now or t in seen)
            if found:
                self._ahead[node] = found
        self.evaluate_all()

    def clock_set_forward(self, by: float) -> None:
        """Our clock was set forward: keep the age of all remembered times."""
        for node, known in self._ahead.items():
            self._ahead[node] = tuple((time, min(time, seen + by)) for time, seen in known)
            self.changed.mark(node)


def changes_plan(before: DaemonSet, after: DaemonSet) -> bool:
    """Whether a field changed that the plan is made from; our own status writes change none."""
    if before.metadata.generation != after.metadata.generation:
        return True
    if before.metadata.annotations != after.metadata.annotations:
        return True
    if before.metadata.deletion_timestamp != after.metadata.deletion_timestamp:
        return True
    return before.status.update_revision != after.status.update_revision


def owner_key(namespace: str, uid: str) -> str:
    """The value under which the caches index what a DaemonSet owns.

    An owner reference has no namespace: by uid alone, objects of any namespace would be included.
    """
    return f"{namespace}/{uid}"
