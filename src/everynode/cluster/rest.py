"""The API: every request finds its verb here, whoever carried it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from everynode.clock import Clock
from everynode.cluster import deletes, reads, subresources, writes
from everynode.cluster.bootstrap import first_objects
from everynode.cluster.builtin import builtin
from everynode.cluster.calls import Call, Site
from everynode.cluster.errors import Refusal, internal, method_not_allowed
from everynode.cluster.kinds import Registry
from everynode.cluster.paths import locate
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


def _with_warnings(response: Response, warnings: list[str]) -> Response:
    """The answer with what the client should know beside it."""
    shown = ", ".join(f"299 - {msgspec.json.encode(text).decode()}" for text in warnings)
    return replace(response, headers={**response.headers, "warning": shown})


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

    async def handle(self, request: Request, *, agent: str = "") -> Response:
        """Answer a request whose answer is whole; `agent` names the program that asks, if known."""
        try:
            return self._answer(request, agent)
        except Refusal as refusal:
            return refusal.response()
        except Exception as error:
            _LOG.exception("request failed: %s %s", request.method, request.path)
            return internal(f"{type(error).__name__}: {error}").response()

    async def open(self, request: Request) -> Response | Watch:
        """Answer a request whose answer is a stream, or say why not."""
        try:
            call = self._locate(request)
            if call is None or call.name or "watch" not in call.kind.verbs or call.subresource:
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

    def _answer(self, request: Request, agent: str = "") -> Response:
        if request.path in _HEALTH:
            return Response(200, b"ok", _TEXT)
        call = self._locate(request, agent)
        if call is None:
            return _NO_PAGE
        response = self._verb(call)(call)
        return _with_warnings(response, call.warnings) if call.warnings else response

    def _verb(self, call: Call) -> Verb:
        if call.subresource:
            return subresources.verb(call)
        request = call.request
        verbs = _OBJECT_VERBS if call.name else _COLLECTION_VERBS
        found = verbs.get(request.method)
        if found is None or found[0] not in call.kind.verbs:
            raise method_not_allowed()
        if call.kind.namespaced and not call.namespace and request.method != "GET":
            raise method_not_allowed()
        return found[1]

    def _locate(self, request: Request, agent: str = "") -> Call | None:
        place = locate(request.path, self.site.kinds)
        return None if place is None else Call(self.site, request, place, agent=agent)
