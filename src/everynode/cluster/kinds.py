"""What a kind is and which are served now; what each does differently is in its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from everynode.cluster.rules import Rules

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


class View(Protocol):
    """How a version shows objects that are stored in another."""

    def show(self, stored: Object) -> Object:
        """The stored object as this version has it."""
        ...

    def store(self, shown: Object) -> Object:
        """An object of this version as it is stored."""
        ...


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with its own address."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""  # of the kind that is sent, when it is not the parent's
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
    rules: Rules = field(default_factory=Rules)
    stored_as: str = ""  # another kind's collection
    view: View | None = None
    type_name: str | None = None  # its entry in the table of types
    schema: Object | None = None  # of a custom kind
    columns: tuple[Object, ...] = ()  # of a custom kind, as tables show it
    list_kind: str = ""
    custom: bool = False

    api_version: str = field(init=False)  # group and version as objects spell them
    storage: str = field(init=False)  # the name of the collection that holds the objects

    def __post_init__(self) -> None:
        """Say once what every request asks."""
        group = self.group
        version = f"{group}/{self.version}" if group else self.version
        storage = self.stored_as or (f"{self.plural}.{group}" if group else self.plural)
        object.__setattr__(self, "api_version", version)
        object.__setattr__(self, "storage", storage)

    @property
    def lists(self) -> str:
        """The kind of a list of them."""
        return self.list_kind or f"{self.kind}List"

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name."""
        for sub in self.subresources:
            if sub.name == name:
                return sub
        return None


def status_of(kind: str) -> Subresource:
    """The status subresource of a kind."""
    return Subresource("status", kind, STATUS_VERBS)


class Registry:
    """All kinds that are served now; custom ones come and go."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._served: set[tuple[str, str]] = set()
        self.places: dict[str, Any] = {}  # what addresses lead to, for as long as nothing changes
        self.revision = 0  # moves with every change, so that discovery knows when to speak anew
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind."""
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._changed()

    def remove(self, kind: Kind) -> None:
        """Serve a kind no longer."""
        self._kinds.pop((kind.group, kind.version, kind.plural), None)
        self._changed()

    def _changed(self) -> None:
        self._served = {(group, version) for group, version, _ in self._kinds}
        self.places.clear()
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind at an address."""
        return self._kinds.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Whether anything at all is served there."""
        return (group, version) in self._served

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))


class Renamed:
    """A version that differs from the stored one in nothing but its name."""

    def __init__(self, shown: str, stored: str) -> None:
        self._shown = shown
        self._stored = stored

    def show(self, stored: Object) -> Object:
        """The stored object under this version's name."""
        return {**stored, "apiVersion": self._shown}

    def store(self, shown: Object) -> Object:
        """The object under the stored version's name."""
        return {**shown, "apiVersion": self._stored}
