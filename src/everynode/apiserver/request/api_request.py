"""ApiRequest: one request as the verbs see it, with its resource path resolved.

It also gives the strategies of resources (validation, admission) access to other stored objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from everynode.api.times import format_time
from everynode.apiserver.apply.managed_fields import Writer
from everynode.apiserver.errors import invalid_option, not_found
from everynode.apiserver.resources.registry import Kind, Registry
from everynode.apiserver.storage.store import Collection, Record, Store
from everynode.clock import Clock
from everynode.kube.requests import Request

if TYPE_CHECKING:
    from everynode.apiserver.output.representation import Representation

Object = dict[str, Any]

_FALSE: Final = ("false", "0")
# managedFields of these collections are tracked for requests with a User-Agent (over HTTPS) only:
# kubelets and controllers write them most, and tracking would double the cost of a write.
_UNTRACKED: Final = ("pods", "nodes", "events", "leases.coordination.k8s.io")
_MAX_MANAGER_BYTES: Final = 128  # bytes
decode_object = msgspec.json.Decoder(Object).decode


def is_true(value: str | None) -> bool:
    """Parse a boolean query parameter as Kubernetes does: present and neither `false` nor `0`."""
    return value is not None and value.lower() not in _FALSE


def _manager_from_agent(agent: str) -> str:
    """Return the field manager of a User-Agent: the part before `/`, at most 128 bytes."""
    name = agent.partition("/")[0]
    if name.isascii() and name.isprintable():
        return name[:_MAX_MANAGER_BYTES]
    kept, size = [], 0
    for char in filter(str.isprintable, name):
        size += len(char.encode())
        if size > _MAX_MANAGER_BYTES:
            break
        kept.append(char)
    return "".join(kept)


class ServerState(msgspec.Struct, frozen=True):
    """What all requests of one server share."""

    clock: Clock
    store: Store
    kinds: Registry
    authority: str = ""  # CA certificate (PEM) of the server; empty without HTTPS


class ResourcePath(msgspec.Struct, frozen=True):
    """The resource that a URL path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class ApiRequest:
    """A request whose path has been resolved to a resource.

    `http` is the request as it arrived; `state` is what all requests share.
    """

    __slots__ = (
        "_agent",
        "_now",
        "collection",
        "form",
        "http",
        "kind",
        "name",
        "namespace",
        "query",
        "state",
        "subresource",
        "warnings",
    )

    def __init__(
        self, state: ServerState, http: Request, place: ResourcePath, *, agent: str = ""
    ) -> None:
        self.state = state
        self.http = http
        self.kind = place.kind
        self.namespace = place.namespace  # empty for all namespaces
        self.name = place.name  # empty for the whole collection
        self.subresource = place.subresource  # empty for the object itself
        self.query = dict(reversed(http.query))  # the first of several values counts
        self.form: Representation | None = None  # the representation of the answer, once negotiated
        self.collection: Collection = state.store.collection(place.kind.storage)
        self.warnings: list[str] = []
        self._agent = agent
        self._now = ""

    @property
    def field_manager(self) -> str:
        """The field manager: the `fieldManager` option, or the program in User-Agent."""
        return self.query.get("fieldManager", "") or _manager_from_agent(self._agent)

    @property
    def writer(self) -> Writer:
        """The client as metadata.managedFields records it."""
        return Writer(self.field_manager, self.kind.api_version, self.now, self.subresource)

    @property
    def tracks_fields(self) -> bool:
        """Whether this write updates metadata.managedFields."""
        if self._agent:
            return True
        return "fieldManager" in self.query and self.kind.storage not in _UNTRACKED

    def for_object(self, record: Record) -> ApiRequest:
        """Return the same request for one object of its collection (deletecollection)."""
        return self.for_path(
            ResourcePath(self.kind, record.namespace, record.name, self.subresource)
        )

    def for_core_kind(self, plural: str, *, namespace: str, name: str = "") -> ApiRequest:
        """Return the same request for a resource of the core group."""
        kind = self.state.kinds.find("", "v1", plural)
        assert kind is not None
        return self.for_path(ResourcePath(kind, namespace, name))

    def for_path(self, place: ResourcePath) -> ApiRequest:
        """Return the same request for another resource path."""
        return ApiRequest(self.state, self.http, place, agent=self._agent)

    @property
    def now(self) -> str:
        """The time as written into objects; the same throughout the request."""
        if not self._now:
            self._now = format_time(self.state.clock.now())
        return self._now

    @property
    def authority(self) -> str:
        """CA certificate (PEM) of the server."""
        return self.state.authority

    @property
    def dry_run(self) -> bool:
        """Whether `dryRun=All` is set: everything is checked, nothing is stored."""
        if "dryRun" not in self.query:
            return False
        values = [value for name, value in self.http.query if name == "dryRun"]
        if any(value != "All" for value in values):
            shown = msgspec.json.encode(values).decode()
            verb = {"POST": "Create", "PUT": "Update", "PATCH": "Patch"}
            raise invalid_option(
                verb.get(self.http.method, "Delete"),
                "dryRun",
                f'Unsupported value: {shown}: supported values: "All"',
            )
        return True

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter."""
        return is_true(self.query.get(name))

    def record(self) -> Record:
        """Return the stored record that the path names; raises 404 NotFound."""
        record = self.collection.get(self.namespace, self.name)
        if record is None:
            raise not_found(self.kind, self.name)
        return record

    def stored(self, record: Record) -> Object:
        """Decode a stored object; the result is the caller's to change."""
        return decode_object(record.body)

    def show(self, record: Record) -> bytes:
        """Return a stored object encoded in the API version of this request."""
        conversion = self.kind.conversion
        if conversion is None:
            return record.body
        return msgspec.json.encode(conversion.show(decode_object(record.body)))

    def exists(self, storage: str, namespace: str, name: str) -> bool:
        """Whether another stored object exists."""
        return self.state.store.collection(storage).get(namespace, name) is not None

    def labels(self, storage: str, namespace: str, name: str) -> dict[str, str]:
        """Return the labels of another stored object; empty if there is none."""
        record = self.state.store.collection(storage).get(namespace, name)
        return {} if record is None else record.labels

    def warn(self, text: str) -> None:
        """Add a Warning header to the response."""
        self.warnings.append(text)

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return another stored object, or None."""
        record = self.state.store.collection(storage).get(namespace, name)
        return None if record is None else decode_object(record.body)

    def all(self, storage: str, namespace: str = "", *, containing: bytes = b"") -> list[Object]:
        """Return the stored objects of a collection whose JSON contains some bytes."""
        records = self.state.store.collection(storage).scan(namespace)
        return [decode_object(each.body) for each in records if each.body.find(containing) >= 0]
