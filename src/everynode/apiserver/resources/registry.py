"""Registry of the kinds that are served now; what differs between them is in their strategies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from everynode.apiserver.resources.strategy import ResourceStrategy
from everynode.apiserver.schema.object_type import ObjectType

Object = dict[str, Any]

VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
STATUS_VERBS: Final = ("get", "patch", "update")


class VersionConversion(Protocol):
    """Converts between a served version and the stored one."""

    def show(self, stored: Object) -> Object:
        """Convert a stored object to this version."""
        ...

    def store(self, shown: Object) -> Object:
        """Convert an object of this version to the stored one."""
        ...


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource of a kind."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""  # of its kind, if they are not the parent's
    version: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version, as it is served."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()
    strategy: ResourceStrategy = field(default_factory=ResourceStrategy)
    stored_as: str = ""  # the collection of another kind
    conversion: VersionConversion | None = None
    type_name: str | None = None  # its name in the table of types
    schema: Object | None = None  # of a custom kind
    columns: tuple[Object, ...] = ()  # additionalPrinterColumns of a custom kind
    list_kind: str = ""
    custom: bool = False

    api_version: str = field(init=False)  # as in objects: `apps/v1`
    storage: str = field(init=False)  # the collection that holds the objects
    object_type: ObjectType = field(init=False)

    def __post_init__(self) -> None:
        """Compute what every request needs once."""
        group = self.group
        version = f"{group}/{self.version}" if group else self.version
        storage = self.stored_as or (f"{self.plural}.{group}" if group else self.plural)
        object.__setattr__(self, "api_version", version)
        object.__setattr__(self, "storage", storage)
        object.__setattr__(self, "object_type", ObjectType(self.type_name, self.schema))

    @property
    def list_kind_name(self) -> str:
        """The kind of a list, `PodList`."""
        return self.list_kind or f"{self.kind}List"

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of that name."""
        for sub in self.subresources:
            if sub.name == name:
                return sub
        return None


def status_subresource(kind: str) -> Subresource:
    """Return the status subresource of a kind."""
    return Subresource("status", kind, STATUS_VERBS)


class Registry:
    """All kinds that are served now; CustomResourceDefinitions add and remove some."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._served: set[tuple[str, str]] = set()
        self.path_cache: dict[str, Any] = {}  # resolved URL paths, until a kind changes
        self.revision = 0  # counts changes: discovery rebuilds its documents
        for kind in kinds:
            self.add(kind)
        self._built_in = frozenset(k.storage for k in self._kinds.values() if not k.custom)

    def add(self, kind: Kind) -> None:
        """Start to serve a kind."""
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._changed()

    def remove(self, kind: Kind) -> None:
        """Stop serving a kind."""
        self._kinds.pop((kind.group, kind.version, kind.plural), None)
        self._changed()

    def _changed(self) -> None:
        self._served = {(group, version) for group, version, _ in self._kinds}
        self.path_cache.clear()
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind of a resource, None if it is not served."""
        return self._kinds.get((group, version, plural))

    def is_built_in(self, storage: str) -> bool:
        """Whether a collection belongs to a built-in kind."""
        return storage in self._built_in

    def serves(self, group: str, version: str) -> bool:
        """Whether any kind of this group and version is served."""
        return (group, version) in self._served

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))


class RenamingConversion:
    """Converts between versions that differ in apiVersion only."""

    def __init__(self, shown: str, stored: str) -> None:
        self._shown = shown
        self._stored = stored

    def show(self, stored: Object) -> Object:
        """Set apiVersion to the served version."""
        return {**stored, "apiVersion": self._shown}

    def store(self, shown: Object) -> Object:
        """Set apiVersion to the stored version."""
        return {**shown, "apiVersion": self._stored}
