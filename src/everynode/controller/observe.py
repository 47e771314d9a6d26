"""What is watched, and which workload each change concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import Decoder
from everynode.api.keys import KIND, KRUISE_GROUP, NATIVE_GROUP, PULLER, REVISION_HASH
from everynode.api.objects import ControllerRevision, Node, OwnerReference, Pod
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.workload import Workload, frees
from everynode.kube.cache import Cache
from everynode.kube.resources import ADVANCED, DAEMONSETS, NODES, PODS, REVISIONS, Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import Scope
from everynode.kube.watch import Observer, Watcher

_GROUPS: Final = {Flavour.NATIVE: NATIVE_GROUP, Flavour.ADVANCED: KRUISE_GROUP}
_RESOURCES: Final = {Flavour.NATIVE: DAEMONSETS, Flavour.ADVANCED: ADVANCED}


class World:
    """Caches of everything we look at, and the workloads they make up."""

    def __init__(self, flavours: Iterable[Flavour], *, namespace: str = "") -> None:
        self.namespace = namespace
        self._groups = frozenset(_GROUPS[flavour] for flavour in flavours)
        self.nodes: Cache[Node] = Cache(quiet=True)
        self.pods: Cache[Pod] = Cache(indexes={"owner": _pod_owner}, keep=self._wants_pod)
        self.revisions: Cache[ControllerRevision] = Cache(
            indexes={"owner": _revision_owner}, keep=self._wants_revision
        )
        self.pullers: Cache[Pod] = Cache(indexes={"owner": _first_owner})
        self.daemonsets: dict[Flavour, Cache[DaemonSet]] = {f: Cache() for f in flavours}
        self.workloads: dict[str, Workload] = {}
        self.changed: Callable[[Workload], None] = lambda _: None  # something can be done, perhaps
        self.moved: Callable[[Workload], None] = lambda _: None  # nothing that cannot wait
        self.vanished: Callable[[Workload], None] = lambda _: None
        # Whether a DaemonSet that changed shows anything but the status that we decided on.
        self.updated: Callable[[DaemonSet, DaemonSet, Workload], bool] = lambda *_: True
        self.orphaned: Callable[[Pod | ControllerRevision], None] = lambda _: None
        self.relabelled: Callable[[Pod, Workload], None] = lambda *_: None
        self.nodes.subscribe(self._node_changed)
        self.pods.subscribe(self._pod_changed)
        self.revisions.subscribe(self._revision_changed)
        for cache in self.daemonsets.values():
            cache.subscribe(self._daemonset_changed)
        self.pullers.subscribe(self._puller_changed)

    def watchers(
        self, transport: Transport, clock: Clock, observer: Observer
    ) -> list[Watcher[Node] | Watcher[Pod] | Watcher[ControllerRevision] | Watcher[DaemonSet]]:
        """The watches that keep the caches up to date.

        Pods are filtered by the server: only those that carry a revision's hash, which are the
        pods of DaemonSets and StatefulSets; the latter are dropped when they arrive.
        """
        watch = partial(Watcher, transport, clock, observer=observer)
        everything = Scope(namespace=self.namespace)
        daemon_pods = Scope(namespace=self.namespace, labels=REVISION_HASH)
        pullers = Scope(namespace=self.namespace, labels=PULLER)
        pod, revision = Decoder(Pod).one, Decoder(ControllerRevision).one
        return [
            watch(resource=NODES, decode=Decoder(Node).one, consumer=self.nodes),
            watch(
                resource=REVISIONS,
                decode=revision,
                consumer=self.revisions,
                scope=everything,
                keep=self._wants_revision,
            ),
            watch(
                resource=PODS,
                decode=pod,
                consumer=self.pods,
                scope=daemon_pods,
                keep=self._wants_pod,
            ),
            watch(resource=PODS, decode=pod, consumer=self.pullers, scope=pullers),
            *(
                watch(
                    resource=resource_of(flavour),
                    decode=partial(decode_daemonset, flavour=flavour),
                    consumer=cache,
                    scope=everything,
                )
                for flavour, cache in self.daemonsets.items()
            ),
        ]

    def start_over(self) -> None:
        """Forget every own write and every decision: a new term begins."""
        self.workloads.clear()
        for cache in self.daemonsets.values():
            for ds in cache.all().values():
                self._take_on(ds)

    # --- Changes ---------------------------------------------------------------------------

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        node = after or before
        assert node is not None
        for workload in self.workloads.values():
            workload.node_changed(node.name)
            self.changed(workload)

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        old = self.workloads.get(_pod_owner(before)) if before is not None else None
        if after is None:
            new = None
        elif before is not None and _same_owners(before, after):
            new = old
        else:
            new = self.workloads.get(_pod_owner(after))
        freeing = frees(before, after)
        tell = self.changed if freeing else self.moved
        if old is not None:
            kept = after if new is old else None
            old.pod_changed(before, kept, freeing=freeing or kept is None)
            tell(old)
        if new is not None and new is not old:
            new.pod_changed(None, after)
            tell(new)
        if new is not None and after is not None and _labels_changed(before, after):
            self.relabelled(after, new)
        if new is None and after is not None and after.metadata.controller is None:
            self.orphaned(after)

    def _puller_changed(self, before: Pod | None, after: Pod | None) -> None:
        puller = after or before
        assert puller is not None
        workload = self.workloads.get(_first_owner(puller))
        if workload is not None:
            self.changed(workload)

    def _revision_changed(
        self, before: ControllerRevision | None, after: ControllerRevision | None
    ) -> None:
        for revision in (before, after):
            workload = self.workloads.get(_revision_owner(revision)) if revision else None
            if workload is not None:
                workload.replan = True
                # One that is gone often went with its DaemonSet: we shall hear of that, too.
                (self.moved if after is None else self.changed)(workload)
        if after is not None and after.metadata.controller is None:
            self.orphaned(after)

    def _daemonset_changed(self, before: DaemonSet | None, after: DaemonSet | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            gone = self.workloads.pop(before.uid, None)
            if gone is not None:
                self.vanished(gone)
        if after is None:
            return
        workload = self.workloads.get(after.uid)
        if workload is None:
            self._take_on(after)
            return
        previous, workload.ds = workload.ds, after
        matter = matters(previous, after)
        workload.replan = workload.replan or matter
        news = self.updated(previous, after, workload)
        # Mostly it is our own status that we see: that lets nobody go on.
        if matter:
            self.changed(workload)
        elif news:
            self.moved(workload)

    def _take_on(self, ds: DaemonSet) -> None:
        workload = Workload(ds, self.nodes.all())
        self.workloads[ds.uid] = workload
        for pod in self.pods.by("owner", ds.uid).values():
            workload.pod_changed(None, pod)
        workload.observe_everything()
        self.changed(workload)

    # --- What is kept ----------------------------------------------------------------------

    def _wants_pod(self, pod: Pod) -> bool:
        return _is_served(pod.metadata.controller, self._groups)

    def _wants_revision(self, revision: ControllerRevision) -> bool:
        return _is_served(revision.metadata.controller, self._groups)


@lru_cache(maxsize=1024)  # asked with every event, of a few owners
def _is_served(controller: OwnerReference | None, groups: frozenset[str]) -> bool:
    """Ours or nobody's; not those of StatefulSets, nor of the kind we do not serve."""
    return controller is None or (controller.kind == KIND and controller.group in groups)


def _same_owners(before: Pod, after: Pod) -> bool:
    return before.metadata.owner_references == after.metadata.owner_references


def _labels_changed(before: Pod | None, after: Pod) -> bool:
    return before is not None and before.metadata.labels != after.metadata.labels


def matters(before: DaemonSet, after: DaemonSet) -> bool:
    """Whether anything but the status changed, or the status in what a plan is made from."""
    if before.metadata.generation != after.metadata.generation:
        return True
    if before.metadata.annotations != after.metadata.annotations:
        return True
    if before.metadata.deletion_timestamp != after.metadata.deletion_timestamp:
        return True
    return before.status.update_revision != after.status.update_revision


def resource_of(flavour: Flavour) -> Resource:
    """The kind as the server knows it."""
    return _RESOURCES[flavour]


def _pod_owner(pod: Pod) -> str:
    for owner in pod.metadata.owner_references:  # asked several times of every pod that changes
        if owner.controller:
            return owner.uid
    return ""


def _first_owner(pod: Pod) -> str:
    """Return the uid of whom a puller works for; it is no controller, lest it claims a daemon."""
    owners = pod.metadata.owner_references
    return owners[0].uid if owners else ""


def _revision_owner(revision: ControllerRevision) -> str:
    controller = revision.metadata.controller
    return controller.uid if controller is not None else ""
