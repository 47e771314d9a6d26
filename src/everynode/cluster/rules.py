"""What is special about a kind when it is written: the default is a plain stored object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec

from everynode.api.daemonset import Fault
from everynode.api.validation.names import dns_subdomain

Object = dict[str, Any]

_APART: Final = ("apiVersion", "kind", "metadata", "status")


class World(Protocol):
    """What the rules of a kind may know beyond the object itself."""

    @property
    def now(self) -> str:
        """The time, as written into objects."""
        ...

    @property
    def authority(self) -> str:
        """The certificate that clients check the server by; empty where none is needed."""
        ...

    def warn(self, text: str) -> None:
        """Tell the client something beside the answer."""
        ...

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Another stored object; it must not be changed."""
        ...

    def exists(self, storage: str, namespace: str, name: str) -> bool:
        """Whether there is such an object."""
        ...

    def labels(self, storage: str, namespace: str, name: str) -> dict[str, str]:
        """The labels of another object, none if it is not there; they must not be changed."""
        ...

    def all(self, storage: str, namespace: str = "", *, saying: bytes = b"") -> list[Object]:
        """All stored objects of a collection, or those whose JSON says something; not to change."""
        ...


class Sketch(msgspec.Struct, frozen=True, gc=False):
    """A stored object of which only little is read; its metadata are as they were written."""

    metadata: msgspec.Raw
    rest: Object


class Rules:
    """A plain stored object: no status of its own, no generation, nothing to check."""

    fields: tuple[str, ...] = ()  # what field selectors may ask, besides name and namespace
    status = False  # the status is written apart from the rest
    generation = False  # changes of the spec are counted
    unconditional_update = True  # a PUT may leave out the resourceVersion
    create_on_update = False  # a PUT may create
    status_alone = False  # nor does a write of the status look at the rest
    returns_deleted = False  # DELETE answers with the object
    name_rule: Callable[[str], Iterator[str]] = staticmethod(dns_subdomain)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """The values of `fields`."""
        return ()

    def select_again(self, status: Object, fields: tuple[str, ...]) -> tuple[str, ...]:
        """The values of `fields` after nothing but the status has changed."""
        raise NotImplementedError

    def default(self, obj: Object) -> Object:
        """Fill in what the writer left out; also done to every changed object."""
        return obj

    def default_status(self, obj: Object) -> Object:
        """The same for an object of which only the status is written."""
        return self.default(obj)

    def prepare_create(self, obj: Object, world: World) -> None:
        """Bring a new object into its first shape."""
        if self.status:
            obj.pop("status", None)
        if self.generation:
            obj["metadata"]["generation"] = 1

    def admit(self, obj: Object, world: World) -> None:
        """Add to a new object what the server gives of its own accord, so that nobody owns it."""

    def companions(self, obj: Object, world: World) -> list[tuple[str, str, Object]]:
        """Core objects that come into being with this one: resource, namespace and object."""
        return []

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """Undo what a write to the main resource may not change; count what it changes."""
        if self.status:
            keep(new, old, "status")
        if self.generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, world: World) -> None:
        """Undo what a write to the status may not change."""
        for key in [key for key in new if key not in _APART]:
            del new[key]
        for key, value in old.items():
            if key not in _APART:
                new[key] = value

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """What is wrong with a new object."""
        return []

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """What is wrong with a changed object."""
        return []

    def status_faults(self, new: Object, old: Object) -> list[Fault]:
        """What is wrong with a changed status."""
        return []

    def after_patch(self, obj: Object) -> Object:
        """What the way of a patch through the server does to an object."""
        return obj

    def change_part(self, part: str, new: Object, old: Object, world: World) -> list[Fault]:
        """Undo what a write to another subresource may not change, and say what is wrong."""
        raise NotImplementedError(part)

    def undeletable(self, obj: Object) -> str:
        """Why an object may not be deleted at all; empty for those that may."""
        return ""

    def sketch(self, body: bytes) -> Sketch | None:
        """What a deletion must know of a stored object besides its metadata; None for all of it."""
        return None

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """Seconds the object gets to end itself; None for kinds that simply go."""
        return None


def keep(new: Object, old: Object, key: str) -> None:
    """Put a member back to what it was."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)
