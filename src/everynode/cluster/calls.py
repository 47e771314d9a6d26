"""One request as the verbs see it: whom it is about, and what it may look up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.cluster.errors import bad_option, not_found
from everynode.cluster.kinds import Kind, Registry
from everynode.cluster.store import Collection, Record, Store
from everynode.kube.requests import Request

if TYPE_CHECKING:
    from everynode.cluster.forms import Form

Object = dict[str, Any]

_FALSE: Final = ("false", "0")
# Who owns their fields is written down only for outside writers: it would double what they cost.
_BUSY: Final = ("pods", "nodes", "events", "leases.coordination.k8s.io")
decode_object = msgspec.json.Decoder(Object).decode


def is_true(value: str | None) -> bool:
    """Whether a query parameter says yes: whatever is there and is not false does."""
    return value is not None and value.lower() not in _FALSE


class Site(msgspec.Struct, frozen=True):
    """What all requests share."""

    clock: Clock
    store: Store
    kinds: Registry
    authority: str = ""  # the certificate that clients check the server by, where it has one


class Place(msgspec.Struct, frozen=True):
    """What an address leads to."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Call:
    """A request whose address has been understood."""

    __slots__ = (
        "_agent",
        "_now",
        "collection",
        "form",
        "kind",
        "name",
        "namespace",
        "query",
        "request",
        "site",
        "subresource",
        "warnings",
    )

    def __init__(self, site: Site, request: Request, place: Place, *, agent: str = "") -> None:
        self.site = site
        self.request = request
        self.kind = place.kind
        self.namespace = place.namespace  # empty for all
        self.name = place.name  # empty for the whole collection
        self.subresource = place.subresource  # the part of the object, if only one is meant
        self.query = dict(request.query)
        self.form: Form | None = None  # in which it is answered, once that is known
        self.collection: Collection = site.store.collection(place.kind.storage)
        self.warnings: list[str] = []
        self._agent = agent
        self._now = ""

    @property
    def manager(self) -> str:
        """Who writes: what they call themselves, or the program they use."""
        return self.query.get("fieldManager", "") or self._agent.partition("/")[0]

    @property
    def tracked(self) -> bool:
        """Whether to write down who owns which field."""
        if self._agent:
            return True
        return "fieldManager" in self.query and self.kind.storage not in _BUSY

    def about(self, record: Record) -> Call:
        """The same call about one object of its collection."""
        return self.within(Place(self.kind, record.namespace, record.name, self.subresource))

    def elsewhere(self, plural: str, *, namespace: str, name: str = "") -> Call:
        """The same request about another core kind."""
        kind = self.site.kinds.find("", "v1", plural)
        assert kind is not None
        return self.within(Place(kind, namespace, name))

    def within(self, place: Place) -> Call:
        """The same request about another place."""
        return Call(self.site, self.request, place, agent=self._agent)

    @property
    def now(self) -> str:
        """The time, as written into objects: one for the whole call."""
        if not self._now:
            self._now = format_time(self.site.clock.now())
        return self._now

    @property
    def authority(self) -> str:
        """The certificate that clients check the server by."""
        return self.site.authority

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be kept."""
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            verb = {"POST": "Create", "PUT": "Update", "PATCH": "Patch"}
            raise bad_option(
                verb.get(self.request.method, "Delete"),
                "dryRun",
                f'Unsupported value: ["{value}"]: supported values: "All"',
            )
        return value == "All"

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false."""
        return is_true(self.query.get(name))

    def record(self) -> Record:
        """The stored object the call is about."""
        record = self.collection.get(self.namespace, self.name)
        if record is None:
            raise not_found(self.kind, self.name)
        return record

    def stored(self, record: Record) -> Object:
        """A stored object, freshly decoded."""
        return decode_object(record.body)

    def show(self, record: Record) -> bytes:
        """A stored object as this call's version has it."""
        view = self.kind.view
        if view is None:
            return record.body
        return msgspec.json.encode(view.show(decode_object(record.body)))

    def exists(self, storage: str, namespace: str, name: str) -> bool:
        """Whether there is such an object."""
        return self.site.store.collection(storage).get(namespace, name) is not None

    def labels(self, storage: str, namespace: str, name: str) -> dict[str, str]:
        """The labels of another stored object."""
        record = self.site.store.collection(storage).get(namespace, name)
        return {} if record is None else record.labels

    def warn(self, text: str) -> None:
        """Tell the client something beside the answer."""
        self.warnings.append(text)

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Another stored object."""
        record = self.site.store.collection(storage).get(namespace, name)
        return None if record is None else decode_object(record.body)

    def all(self, storage: str, namespace: str = "", *, saying: bytes = b"") -> list[Object]:
        """All stored objects of a collection, or those whose JSON says something."""
        records = self.site.store.collection(storage).scan(namespace)
        return [decode_object(record.body) for record in records if saying in record.body]
