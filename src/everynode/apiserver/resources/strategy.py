"""Resource strategy: what is specific to a kind when it is written, read or deleted.

Named after the strategies of kube-apiserver (RESTCreateStrategy and so on). The base class is the
strategy of a plain object, without status, generation, defaults or validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.validation.names import dns_subdomain

Object = dict[str, Any]

_NOT_CONTENT: Final = ("apiVersion", "kind", "metadata", "status")


class StrategyContext(Protocol):
    """What a strategy may use besides the object: the time, other stored objects, warnings."""

    @property
    def now(self) -> str:
        """The current time, as written into objects."""
        ...

    @property
    def authority(self) -> str:
        """The CA certificate of the server; empty if clients need none."""
        ...

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer."""
        ...

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return another stored object; the caller must not change it."""
        ...

    def exists(self, storage: str, namespace: str, name: str) -> bool:
        """Whether an object is stored."""
        ...

    def labels(self, storage: str, namespace: str, name: str) -> dict[str, str]:
        """Return the labels of another object, empty if it is missing; not to be changed."""
        ...

    def all(self, storage: str, namespace: str = "", *, containing: bytes = b"") -> list[Object]:
        """Return the objects of a collection, or those whose JSON holds some bytes; read only."""
        ...


class PartialObject(msgspec.Struct, frozen=True, gc=False):
    """A stored object that was decoded in part; the metadata is still JSON."""

    metadata: msgspec.Raw
    rest: Object


class ResourceStrategy:
    """The strategy of a plain object: no status, no generation, no validation."""

    fields: tuple[str, ...] = ()  # field selectors besides name and namespace
    status = False  # the status is written at its own endpoint
    generation = False  # metadata.generation counts changes of the spec
    unconditional_update = True  # a PUT may leave out the resourceVersion
    create_on_update = False  # a PUT may create
    status_is_independent = False  # a write of the status need not read the rest
    returns_deleted_object = False  # DELETE answers with the object
    name_rule: Callable[[str], Iterator[str]] = staticmethod(dns_subdomain)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Return the values of `fields`."""
        return ()

    def selectable_after_status(self, status: Object, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of `fields` after a change of the status only."""
        raise NotImplementedError

    def default(self, obj: Object) -> Object:
        """Set defaults, on create and on update."""
        return obj

    def default_status(self, obj: Object) -> Object:
        """Set defaults when only the status is written."""
        return self.default(obj)

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Reset what clients cannot set on create (PrepareForCreate)."""
        if self.status:
            obj.pop("status", None)
        if self.generation:
            obj["metadata"]["generation"] = 1

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Run mutating admission on a new object; no manager owns the fields that it sets."""

    def created_with(self, obj: Object, context: StrategyContext) -> list[tuple[str, str, Object]]:
        """Return core objects to create with this one: resource, namespace and object."""
        return []

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Reset what an update cannot change (PrepareForUpdate); count the generation."""
        if self.status:
            restore_field(new, old, "status")
        if self.generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Reset what a write of the status cannot change."""
        for key in [key for key in new if key not in _NOT_CONTENT]:
            del new[key]
        for key, value in old.items():
            if key not in _NOT_CONTENT:
                new[key] = value

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Return the faults of a new object."""
        return []

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Return the faults of an update."""
        return []

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        """Return the faults of a status update."""
        return []

    def after_patch(self, obj: Object) -> Object:
        """Return the object as a patch leaves it, where that differs from what was sent."""
        return obj

    def prepare_subresource(
        self, part: str, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Reset what a write of another subresource cannot change; return its faults."""
        raise NotImplementedError(part)

    def deletion_forbidden(self, obj: Object) -> str:
        """Return why an object can never be deleted; empty if it can."""
        return ""

    def partial_object(self, body: bytes) -> PartialObject | None:
        """Decode only what a deletion needs; None if that is the whole object."""
        return None

    def grace(self, obj: Object, requested: int | None) -> int | None:
        """Return the grace period in seconds; None for kinds that are deleted at once."""
        return None


def restore_field(new: Object, old: Object, key: str) -> None:
    """Set a member back to its old value."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)
