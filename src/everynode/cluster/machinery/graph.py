"""Who owns whom: every object that owns something or is owned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from everynode.cluster.machinery.objects import Meta, Owner, PodMeta
from everynode.kube.resources import Resource

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


@dataclass(slots=True)
class Thing:
    """An object as the garbage collector sees it."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    def is_like(self, meta: Meta | PodMeta) -> bool:
        """Whether an object that stays has the same owners and finalizers as before."""
        return (
            not self.deleting
            and meta.deletion_timestamp is None
            and meta.owner_references == self.owners
            and meta.finalizers == self.finalizers
        )

    @property
    def awaits_dependents(self) -> bool:
        """Whether it stays until what it owns is gone."""
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def lets_go(self) -> bool:
        """Whether what it owns is to be left behind."""
        return self.deleting and ORPHAN in self.finalizers


@dataclass(slots=True)
class Graph:
    """All things by uid, and what each owns."""

    things: dict[str, Thing] = field(default_factory=dict)
    _owned: dict[str, dict[str, None]] = field(default_factory=dict)

    def put(self, thing: Thing) -> None:
        """A thing is new or has changed."""
        known = self.things.get(thing.uid)
        if known is not None and known.owners != thing.owners:
            self._unlink(known)
        self.things[thing.uid] = thing
        for owner in thing.owners:
            self._owned.setdefault(owner.uid, {})[thing.uid] = None

    def remove(self, uid: str) -> Thing | None:
        """A thing is gone; what it was, if it was known."""
        thing = self.things.pop(uid, None)
        if thing is not None:
            self._unlink(thing)
        return thing

    def owned_by(self, uid: str) -> list[Thing]:
        """What a thing owns, in the order in which it became known."""
        return [self.things[each] for each in self._owned.get(uid, ()) if each in self.things]

    def blocking(self, uid: str) -> list[Thing]:
        """What must be gone before a thing that awaits its dependents can go."""
        return [
            each
            for each in self.owned_by(uid)
            if any(owner.uid == uid and owner.block_owner_deletion for owner in each.owners)
        ]

    def owns_any(self, uid: str) -> bool:
        """Whether a thing owns anything."""
        return bool(self._owned.get(uid))

    def _unlink(self, thing: Thing) -> None:
        for owner in thing.owners:
            owned = self._owned.get(owner.uid)
            if owned is not None:
                owned.pop(thing.uid, None)
                if not owned:
                    del self._owned[owner.uid]
