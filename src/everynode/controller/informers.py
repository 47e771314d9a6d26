"""Informers: the caches of everything that is watched, and which DaemonSet each change concerns.

Each change of a cached object is routed to the state of its DaemonSet. What the reconciler has to
do about it is returned as effects, such as `Reconcile`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, TypeVar

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import require_identity
from everynode.api.keys import KIND, KRUISE_GROUP, NATIVE_GROUP, PULL_POD_OWNER, REVISION_HASH
from everynode.api.objects import ControllerRevision, Node, OwnerReference, Pod
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.scheduling import Urgency, pod_urgency
from everynode.controller.state import DaemonSetState, owner_key
from everynode.kube.resources import ADVANCED, DAEMONSETS, NODES, PODS, REVISIONS, Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher, WatchObserver

_GROUPS: Final = {Flavour.NATIVE: NATIVE_GROUP, Flavour.ADVANCED: KRUISE_GROUP}
_RESOURCES: Final = {Flavour.NATIVE: DAEMONSETS, Flavour.ADVANCED: ADVANCED}


@dataclass(slots=True)
class Reconcile:
    """The DaemonSet has to be reconciled."""

    state: DaemonSetState
    urgency: Urgency


@dataclass(slots=True)
class DaemonSetUpdated:
    """A DaemonSet changed: its spec, or only its status."""

    state: DaemonSetState
    before: DaemonSet
    plan_outdated: bool


@dataclass(slots=True)
class DaemonSetGone:
    """A DaemonSet does not exist any more."""

    state: DaemonSetState


@dataclass(slots=True)
class PodRelabelled:
    """The labels of an own pod changed: the selector may not match it any more."""

    state: DaemonSetState
    pod: Pod


@dataclass(slots=True)
class OrphanSeen:
    """A pod or a revision without a controller was seen."""

    orphan: Pod | ControllerRevision


Effect = Reconcile | DaemonSetUpdated | DaemonSetGone | PodRelabelled | OrphanSeen
T = TypeVar("T", Node, Pod, ControllerRevision, DaemonSet)


class Informers:
    """Caches of everything that is watched, and the states of the DaemonSets in them."""

    def __init__(self, flavours: Iterable[Flavour], *, namespace: str = "") -> None:
        self.namespace = namespace
        self._groups = frozenset(_GROUPS[flavour] for flavour in flavours)
        self.nodes: Cache[Node] = Cache(quiet=True)
        self.pods: Cache[Pod] = Cache(indexes={"owner": _controller_key}, keep=self._wants_pod)
        self.revisions: Cache[ControllerRevision] = Cache(
            indexes={"owner": _controller_key}, keep=self._wants_revision
        )
        self.pull_pods: Cache[Pod] = Cache(indexes={"owner": _pull_pod_owner})
        self.daemonsets: dict[Flavour, Cache[DaemonSet]] = {f: Cache() for f in flavours}
        self.states: dict[str, DaemonSetState] = {}  # by uid
        self._handler: Callable[[Effect], None] = _ignore  # while no term has begun
        self._subscribe(self.nodes, self.node_changed)
        self._subscribe(self.pods, self.pod_changed)
        self._subscribe(self.revisions, self.revision_changed)
        for cache in self.daemonsets.values():
            self._subscribe(cache, self.daemonset_changed)
        self._subscribe(self.pull_pods, self.pull_pod_changed)

    def set_handler(self, handler: Callable[[Effect], None]) -> None:
        """Hand the effects of all changes to this function from now on."""
        self._handler = handler

    def remove_handler(self) -> None:
        """Hand effects on no longer: we do not lead. The states follow the changes all the same."""
        self._handler = _ignore

    def _subscribe(
        self, cache: Cache[T], route: Callable[[T | None, T | None], Iterator[Effect]]
    ) -> None:
        def handle(before: T | None, after: T | None) -> None:
            for effect in route(before, after):
                self._handler(effect)

        cache.subscribe(handle)

    def watchers(
        self, transport: Transport, clock: Clock, observer: WatchObserver
    ) -> list[Watcher[Node] | Watcher[Pod] | Watcher[ControllerRevision] | Watcher[DaemonSet]]:
        """The watches that keep the caches up to date.

        The API server selects pods with a revision hash: those of DaemonSets and StatefulSets.
        The latter are dropped when they arrive.
        """
        watch = partial(Watcher, transport, clock, observer=observer)
        everything = ListOptions(namespace=self.namespace)
        daemon_pods = ListOptions(namespace=self.namespace, labels=REVISION_HASH)
        pull_pods = ListOptions(namespace=self.namespace, labels=PULL_POD_OWNER)
        pod = require_identity(Decoder(Pod).one)
        revision = require_identity(Decoder(ControllerRevision).one)
        return [
            watch(resource=NODES, decode=Decoder(Node).one, consumer=self.nodes),
            watch(
                resource=REVISIONS,
                decode=revision,
                consumer=self.revisions,
                options=everything,
                keep=self._wants_revision,
            ),
            watch(
                resource=PODS,
                decode=pod,
                consumer=self.pods,
                options=daemon_pods,
                keep=self._wants_pod,
            ),
            watch(resource=PODS, decode=pod, consumer=self.pull_pods, options=pull_pods),
            *(
                watch(
                    resource=resource_of(flavour),
                    decode=require_identity(partial(decode_daemonset, flavour=flavour)),
                    consumer=cache,
                    options=everything,
                )
                for flavour, cache in self.daemonsets.items()
            ),
        ]

    def start_over(self) -> None:
        """Forget every pending write and every decision: a new term begins.

        The last pods of empty nodes are kept: no other process may have seen them (R3).
        """
        before = dict(self.states)
        self.states.clear()
        for cache in self.daemonsets.values():
            for ds in cache.all().values():
                state = self._add_state(ds)
                if ds.uid in before:
                    state.keep_last_pods(before[ds.uid])

    # --- Routing: what a change means for the DaemonSets ----------------------------------------

    def node_changed(self, before: Node | None, after: Node | None) -> Iterator[Effect]:
        """A node was added, deleted, or changed in a field that we read."""
        node = after or before
        assert node is not None
        for state in self.states.values():
            state.node_changed(node.name, gone=after is None)
            yield Reconcile(state, Urgency.UNBLOCKS)

    def pod_changed(self, before: Pod | None, after: Pod | None) -> Iterator[Effect]:
        """A pod changed, and with that perhaps its DaemonSet: it can be adopted or released."""
        old = self._owner_of(before) if before is not None else None
        if after is None:
            new = None
        elif before is not None and _same_owners(before, after):
            new = old
        else:
            new = self._owner_of(after)
        urgency = pod_urgency(before, after)
        if old is not None:
            kept = after if new is old else None
            released = kept is None
            old.pod_changed(before, kept, unblocking=released or urgency is Urgency.UNBLOCKS)
            yield Reconcile(old, urgency)
        if new is not None and new is not old:
            new.pod_changed(None, after)
            yield Reconcile(new, urgency)
        if after is None:
            return
        if new is not None and _labels_changed(before, after):
            yield PodRelabelled(new, after)
        if new is None and after.metadata.controller is None:
            yield OrphanSeen(after)

    def pull_pod_changed(self, before: Pod | None, after: Pod | None) -> Iterator[Effect]:
        """A pod that pulls images ahead of an update changed."""
        pod = after or before
        assert pod is not None
        owners = pod.metadata.owner_references
        state = self.states.get(owners[0].uid) if owners else None
        if state is not None and state.ds.namespace == pod.metadata.namespace:
            yield Reconcile(state, Urgency.UNBLOCKS)

    def revision_changed(
        self, before: ControllerRevision | None, after: ControllerRevision | None
    ) -> Iterator[Effect]:
        """A revision changed, and with that perhaps its DaemonSet."""
        # A revision is often deleted with its DaemonSet: defer until the DaemonSet's event comes.
        urgency = Urgency.DEFERRED if after is None else Urgency.UNBLOCKS
        for revision in (before, after):
            state = self._owner_of(revision) if revision is not None else None
            if state is not None:
                state.invalidate_plan()
                yield Reconcile(state, urgency)
        if after is not None and after.metadata.controller is None:
            yield OrphanSeen(after)

    def daemonset_changed(
        self, before: DaemonSet | None, after: DaemonSet | None
    ) -> Iterator[Effect]:
        """A DaemonSet changed; one with the same name and another uid is another DaemonSet."""
        if before is not None and (after is None or after.uid != before.uid):
            gone = self.states.pop(before.uid, None)
            if gone is not None:
                gone.take_back_writes()
                yield DaemonSetGone(gone)
        if after is None:
            return
        state = self.states.get(after.uid)
        if state is None:
            yield Reconcile(self._add_state(after), Urgency.UNBLOCKS)
            return
        previous = state.ds
        plan_outdated = state.daemonset_changed(after)
        yield DaemonSetUpdated(state, previous, plan_outdated)

    def _add_state(self, ds: DaemonSet) -> DaemonSetState:
        state = DaemonSetState(ds, self.nodes.all())
        self.states[ds.uid] = state
        for pod in self.pods.by("owner", state.owner_key).values():
            state.pod_changed(None, pod)
        state.evaluate_all()
        return state

    def _owner_of(self, item: Pod | ControllerRevision) -> DaemonSetState | None:
        """The DaemonSet that controls this object, in the same namespace.

        A user with rights in one namespace can write any uid into an owner reference there, so an
        owner in another namespace does not count.
        """
        meta = item.metadata
        controller = meta.controller
        state = self.states.get(controller.uid) if controller is not None else None
        if state is None or state.ds.namespace != meta.namespace:
            return None
        return state

    # --- Filter of the caches --------------------------------------------------------------

    def _wants_pod(self, pod: Pod) -> bool:
        return _is_served(pod.metadata.controller, self._groups)

    def _wants_revision(self, revision: ControllerRevision) -> bool:
        return _is_served(revision.metadata.controller, self._groups)


@lru_cache(maxsize=1024)  # called for every event, with few different owners
def _is_served(controller: OwnerReference | None, groups: frozenset[str]) -> bool:
    """Whether it is an orphan, or controlled by a DaemonSet of a kind that we serve."""
    return controller is None or (controller.kind == KIND and controller.group in groups)


def _ignore(effect: Effect) -> None:
    """React to no change."""


def _same_owners(before: Pod, after: Pod) -> bool:
    return before.metadata.owner_references == after.metadata.owner_references


def _labels_changed(before: Pod | None, after: Pod) -> bool:
    return before is not None and before.metadata.labels != after.metadata.labels


def resource_of(flavour: Flavour) -> Resource:
    """The API resource of a kind of DaemonSet."""
    return _RESOURCES[flavour]


def _controller_key(item: Pod | ControllerRevision) -> str:
    """Index value: the namespace of an object and the uid of its controller."""
    meta = item.metadata
    controller = meta.controller
    return owner_key(meta.namespace, controller.uid) if controller is not None else ""


def _pull_pod_owner(pod: Pod) -> str:
    """Index value of a pull pod: its namespace and the uid of its first owner.

    Pull pods have an owner reference that is not a controller reference on purpose: with a
    controller reference they would count as daemon pods.
    """
    meta = pod.metadata
    owners = meta.owner_references
    return owner_key(meta.namespace, owners[0].uid) if owners else ""
