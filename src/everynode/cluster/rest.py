"""The API: every request finds its verb here, whoever carried it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.clock import Clock
from everynode.cluster import deletes, reads, subresources, writes
from everynode.cluster.bootstrap import first_objects
from everynode.cluster.builtin import builtin
from everynode.cluster.calls import Call, Site
from everynode.cluster.errors import Refusal, internal, method_not_allowed
from everynode.cluster.kinds import Kind, Registry
from everynode.cluster.store import Store
from everynode.cluster.watches import Watch
from everynode.kube.requests import Request, Response

Object = dict[str, Any]
Verb = Callable[[Call], Response]

_LOG: Final = logging.getLogger(__name__)
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_NO_PAGE: Final = Response(404, b"404 page not found\n", _TEXT)
_HEALTH: Final = ("/healthz", "/livez", "/readyz")

_OBJECT_VERBS: Final[dict[str, tuple[str, Verb]]] = {
    "GET": ("get", reads.get),
    "PUT": ("update", writes.update),
    "PATCH": ("patch", writes.patch),
    "DELETE": ("delete", deletes.delete),
}
_COLLECTION_VERBS: Final[dict[str, tuple[str, Verb]]] = {
    "GET": ("list", reads.list_objects),
    "POST": ("create", writes.create),
    "DELETE": ("deletecollection", deletes.delete_collection),
}


class Api:
    """An API server without a socket."""

    def __init__(self, *, clock: Clock, store: Store | None = None) -> None:
        self.site = Site(clock=clock, store=store or Store(), kinds=Registry(builtin()))
        self._watches: dict[int, Watch] = {}
        for path, obj in first_objects():
            self._answer(Request("POST", path, body=msgspec.json.encode(obj)))

    @property
    def store(self) -> Store:
        """What is stored."""
        return self.site.store

    async def handle(self, request: Request) -> Response:
        """Answer a request whose answer is whole."""
        try:
            return self._answer(request)
        except Refusal as refusal:
            return refusal.response()
        except Exception as error:
            _LOG.exception("request failed: %s %s", request.method, request.path)
            return internal(f"{type(error).__name__}: {error}").response()

    async def open(self, request: Request) -> Response | Watch:
        """Answer a request whose answer is a stream, or say why not."""
        try:
            call = self._locate(request)
            if call is None or "watch" not in call.kind.verbs or call.subresource:
                return await self.handle(request)
            watch = reads.watch(call, reads.plain_form(call))
        except Refusal as refusal:
            return refusal.response()
        self._watches = {key: kept for key, kept in self._watches.items() if not kept.closed}
        self._watches[id(watch)] = watch
        return watch

    def stop(self) -> None:
        """End every watch."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def _answer(self, request: Request) -> Response:
        if request.path in _HEALTH:
            return Response(200, b"ok", _TEXT)
        call = self._locate(request)
        if call is None:
            return _NO_PAGE
        if call.subresource:
            return subresources.answer(call)
        verbs = _OBJECT_VERBS if call.name else _COLLECTION_VERBS
        found = verbs.get(request.method)
        if found is None or found[0] not in call.kind.verbs:
            raise method_not_allowed()
        if call.kind.namespaced and not call.namespace and request.method != "GET":
            raise method_not_allowed()
        return found[1](call)

    def _locate(self, request: Request) -> Call | None:
        """Whom a request is about; None for addresses that mean nothing here."""
        match request.path.split("/")[1:]:
            case ["api", version, *rest]:
                group = ""
            case ["apis", group, version, *rest]:
                pass
            case _:
                return None
        namespace = ""
        if group == "" and rest[:1] == ["namespaces"] and not _names_resource(rest):
            parts = rest
        elif rest[:1] == ["namespaces"] and len(rest) >= 3:
            namespace, parts = rest[1], rest[2:]
        else:
            parts = rest
        if not 1 <= len(parts) <= 3 or not all(parts):
            return None
        kind = self.site.kinds.find(group, version, parts[0])
        if kind is None or (namespace and not kind.namespaced):
            return None
        return self._call(
            request,
            kind,
            namespace=namespace,
            name=parts[1] if len(parts) > 1 else "",
            subresource=parts[2] if len(parts) > 2 else "",
        )

    def _call(
        self, request: Request, kind: Kind, *, namespace: str, name: str, subresource: str
    ) -> Call:
        return Call(
            self.site, request, kind, namespace=namespace, name=name, subresource=subresource
        )


def _names_resource(rest: list[str]) -> bool:
    """Whether `namespaces/N/x` goes on to a resource, rather than a part of the namespace."""
    return len(rest) >= 3 and rest[2] not in ("status", "finalize")
