"""The API: every request finds its verb here, whoever carried it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api.crd import NAME as ADVANCED
from everynode.clock import Clock
from everynode.cluster import deletes, podparts, reads, reviews, subresources, writes
from everynode.cluster.bootstrap import first_objects
from everynode.cluster.builtin import builtin
from everynode.cluster.calls import Call, Site
from everynode.cluster.customresources import DEFINITIONS, Definitions
from everynode.cluster.daemonsets import AdvancedDaemonSetRules
from everynode.cluster.deadlines import allowed_seconds
from everynode.cluster.discovery import Discovery
from everynode.cluster.errors import (
    Refusal,
    bad_request,
    internal,
    method_not_allowed,
    no_such_resource,
    timed_out,
)
from everynode.cluster.expiry import Expiry
from everynode.cluster.forms import form_of
from everynode.cluster.kinds import Registry
from everynode.cluster.paths import locate
from everynode.cluster.store import Change, Journal, Store
from everynode.cluster.watches import Watch
from everynode.kube.requests import Request, Response

Object = dict[str, Any]
Verb = Callable[[Call], Response]

_LOG: Final = logging.getLogger(__name__)
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_NO_PAGE: Final = Response(404, b"404 page not found\n", _TEXT)
HEALTH: Final = ("/healthz", "/livez", "/readyz")

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
# Kinds that are asked rather than stored.
_QUESTIONS: Final[dict[str, Verb]] = {
    "bindings": podparts.bind_any,
    "selfsubjectaccessreviews.authorization.k8s.io": reviews.may_i,
    "selfsubjectrulesreviews.authorization.k8s.io": reviews.what_may_i,
    "selfsubjectreviews.authentication.k8s.io": reviews.who_am_i,
}


class Api:
    """An API server without a socket."""

    def __init__(self, *, clock: Clock, store: Store | None = None, authority: str = "") -> None:
        kinds = Registry(builtin())
        self.site = Site(clock=clock, store=store or Store(), kinds=kinds, authority=authority)
        self._definitions = Definitions(self.site.kinds, {ADVANCED: AdvancedDaemonSetRules})
        self._discovery = Discovery(self.site.kinds)
        self._watches: dict[int, Watch] = {}
        self.store.observe(DEFINITIONS, self._defined)
        Expiry(self.store, clock)
        for record in self.store.collection(DEFINITIONS).scan():
            self._definitions.define(record.name, record.body)
        if not self.store.collection("namespaces"):
            for path, obj in first_objects():
                self._answer(Request("POST", path, body=msgspec.json.encode(obj)))

    @property
    def store(self) -> Store:
        """What is stored."""
        return self.site.store

    async def handle(
        self, request: Request, *, agent: str = "", arrived: float | None = None
    ) -> Response:
        """Answer a request whose answer is whole.

        `agent` names the program that asks, if known; `arrived` is when, on the monotonic clock.
        """
        try:
            seconds = allowed_seconds(request)
            if seconds is not None and arrived is not None:
                seconds -= self.site.clock.monotonic() - arrived
            if seconds is not None and seconds <= 0:
                raise timed_out()
            if self.site.store.journal is None:
                return self._answer(request, agent)  # nothing to wait for
            async with asyncio.timeout(seconds):
                return await self._settled(request, agent, self.site.store.journal)
        except Refusal as refusal:
            return refusal.response()
        except TimeoutError:
            return timed_out().response()
        except Exception as error:
            if error is not self.site.store.error:  # that one is told by whoever runs us
                _LOG.exception("request failed: %s %s", request.method, request.path)
            return internal(f"{type(error).__name__}: {error}").response()

    async def open(self, request: Request) -> Response | Watch:
        """Answer a request whose answer is a stream, or say why not."""
        try:
            call = self._locate(request)
            if call is None or call.name or "watch" not in call.kind.verbs:
                return await self.handle(request)
            watch = reads.watch(call)
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

    async def _settled(self, request: Request, agent: str, journal: Journal) -> Response:
        """Nobody is told of anything that a crash could take back."""
        if request.method != "GET":
            await journal.room()
        try:
            return self._answer(request, agent)
        finally:
            await self.site.store.settle()

    def _answer(self, request: Request, agent: str = "") -> Response:
        if request.path in HEALTH:
            return Response(200, b"ok", _TEXT)
        place = locate(request.path, self.site.kinds)
        if place is None:
            return self._about_itself(request)
        call = Call(self.site, request, place, agent=agent)
        try:
            if request.method != "GET":
                form_of(call)  # an answer that nobody takes is refused before anything is done
            response = self._verb(call)(call)
        except Refusal as refusal:
            response = refusal.response()
        except msgspec.ValidationError as error:
            response = bad_request(f"the object cannot be read: {error}").response()
        except RecursionError:
            if not request.body:
                raise
            response = bad_request("the body cannot be read: it is nested too deeply").response()
        return _with_warnings(response, call.warnings) if call.warnings else response

    def _about_itself(self, request: Request) -> Response:
        """What the server has to offer, and the refusals for what it has not."""
        answer = self._discovery.answer(request.path, request.accept)
        if answer is not None:
            return answer if request.method == "GET" else method_not_allowed().response()
        match request.path.split("/")[1:]:
            case ["api", _, *_]:
                return no_such_resource().response()
            case ["apis", group, _, *_] if any(kind.group == group for kind in self.site.kinds):
                return no_such_resource().response()
        return _NO_PAGE

    def _verb(self, call: Call) -> Verb:
        if call.subresource:
            return subresources.verb(call)
        method = call.request.method
        verbs = _OBJECT_VERBS if call.name else _COLLECTION_VERBS
        found = verbs.get(method)
        if found is None or found[0] not in call.kind.verbs:
            if call.name and not any(verb in call.kind.verbs for verb, _ in verbs.values()):
                raise no_such_resource()
            raise method_not_allowed()
        if call.kind.namespaced and not call.namespace and method != "GET":
            raise method_not_allowed()
        return _QUESTIONS.get(call.kind.storage, found[1])

    def _locate(self, request: Request) -> Call | None:
        place = locate(request.path, self.site.kinds)
        return None if place is None else Call(self.site, request, place)

    def _defined(self, change: Change) -> None:
        """Serve what the definitions say; a kind that goes takes its objects with it."""
        if change.type != "DELETED":
            self._definitions.define(change.record.name, change.record.body)
            return
        for kind in self._definitions.forget(change.record.name):
            collection = self.store.collection(kind.storage)
            for record in list(collection.scan()):
                self.store.remove(collection, record)


def _with_warnings(response: Response, warnings: list[str]) -> Response:
    """The answer with what the client should know beside it."""
    shown = ", ".join(f"299 - {msgspec.json.encode(text).decode()}" for text in warnings)
    return replace(response, headers={**response.headers, "warning": shown})
