"""Owner graph: every object with its owners and dependents."""

from __future__ import annotations

from dataclasses import dataclass, field

from everynode.api.keys import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from everynode.components.objects import FullOwnerReference, FullPodMeta, PartialMeta
from everynode.kube.resources import Resource


@dataclass(slots=True)
class GraphObject:
    """An object as the garbage collector sees it."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    owners: tuple[FullOwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    def is_unchanged(self, meta: PartialMeta | FullPodMeta) -> bool:
        """Whether owners and finalizers are the same as before, and it is not being deleted."""
        return (
            not self.deleting
            and meta.deletion_timestamp is None
            and meta.owner_references == self.owners
            and meta.finalizers == self.finalizers
        )

    @property
    def awaits_dependents(self) -> bool:
        """Whether it is deleted in the foreground: it stays until its dependents are gone."""
        return self.deleting and FOREGROUND_DELETION in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Whether it is deleted with propagation policy Orphan."""
        return self.deleting and ORPHAN_DEPENDENTS in self.finalizers


@dataclass(slots=True)
class OwnerGraph:
    """All objects by uid, and the dependents of each."""

    objects: dict[str, GraphObject] = field(default_factory=dict)
    _dependents: dict[str, dict[str, None]] = field(default_factory=dict)

    def put(self, item: GraphObject) -> None:
        """Add or replace an object."""
        known = self.objects.get(item.uid)
        if known is not None and known.owners != item.owners:
            self._unlink(known)
        self.objects[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner.uid, {})[item.uid] = None

    def remove(self, uid: str) -> GraphObject | None:
        """Remove an object; returns it, if it was known."""
        item = self.objects.pop(uid, None)
        if item is not None:
            self._unlink(item)
        return item

    def dependents_of(self, uid: str) -> list[GraphObject]:
        """The dependents of an object, in the order in which they became known."""
        return [
            self.objects[each] for each in self._dependents.get(uid, ()) if each in self.objects
        ]

    def blocking_dependents(self, uid: str) -> list[GraphObject]:
        """The dependents with blockOwnerDeletion: a foreground deletion waits for them."""
        return [
            each
            for each in self.dependents_of(uid)
            if any(owner.uid == uid and owner.block_owner_deletion for owner in each.owners)
        ]

    def has_dependents(self, uid: str) -> bool:
        """Whether an object has dependents."""
        return bool(self._dependents.get(uid))

    def _unlink(self, item: GraphObject) -> None:
        for owner in item.owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(item.uid, None)
                if not dependents:
                    del self._dependents[owner.uid]
