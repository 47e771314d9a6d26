"""Request dispatch: resolves the path of a request and calls the verb that handles it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from everynode.api.crd import CRD_NAME as ADVANCED
from everynode.apiserver.bootstrap import bootstrap_objects
from everynode.apiserver.errors import (
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    timed_out,
    unknown_resource,
)
from everynode.apiserver.output.discovery import Discovery
from everynode.apiserver.output.representation import representation_for
from everynode.apiserver.request.api_request import ApiRequest, ServerState
from everynode.apiserver.request.paths import resolve_path
from everynode.apiserver.request.strings import with_valid_unicode
from everynode.apiserver.request.timeout import write_timeout
from everynode.apiserver.resources.builtin import builtin_kinds
from everynode.apiserver.resources.custom_resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceRegistrar,
)
from everynode.apiserver.resources.daemonsets import AdvancedDaemonSetStrategy
from everynode.apiserver.resources.registry import Registry
from everynode.apiserver.schema.go_format import quote
from everynode.apiserver.storage.event_expiry import EventExpiry
from everynode.apiserver.storage.store import Change, JournalWriter, Record, Store
from everynode.apiserver.verbs import (
    delete,
    pod_subresources,
    read,
    self_reviews,
    subresources,
    write,
)
from everynode.apiserver.verbs.watch import Watch
from everynode.clock import Clock
from everynode.kube.requests import Request, Response
from everynode.log_text import clean, describe

Verb = Callable[[ApiRequest], Response]

_DOT_NAMES: Final = (".", "..")
_LOG: Final = logging.getLogger(__name__)
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_NO_PAGE: Final = Response(404, b"404 page not found\n", _TEXT)
HEALTH: Final = ("/healthz", "/livez", "/readyz")

_OBJECT_VERBS: Final[dict[str, tuple[str, Verb]]] = {
    "GET": ("get", read.get),
    "PUT": ("update", write.update),
    "PATCH": ("patch", write.patch),
    "DELETE": ("delete", delete.delete),
}
_COLLECTION_VERBS: Final[dict[str, tuple[str, Verb]]] = {
    "GET": ("list", read.list_objects),
    "POST": ("create", write.create),
    "DELETE": ("deletecollection", delete.delete_collection),
}
# Kinds that are only created, answered and never stored.
_NOT_STORED: Final[dict[str, Verb]] = {
    "bindings": pod_subresources.bind_from_collection,
    "selfsubjectaccessreviews.authorization.k8s.io": self_reviews.self_subject_access_review,
    "selfsubjectrulesreviews.authorization.k8s.io": self_reviews.self_subject_rules_review,
    "selfsubjectreviews.authentication.k8s.io": self_reviews.self_subject_review,
}


class Api:
    """The API server without a transport: store, served kinds, verbs and open watches."""

    def __init__(self, *, clock: Clock, store: Store | None = None, authority: str = "") -> None:
        kinds = Registry(builtin_kinds())
        self.state = ServerState(
            clock=clock, store=store or Store(), kinds=kinds, authority=authority
        )
        self._definitions = CustomResourceRegistrar(
            self.state.kinds, {ADVANCED: AdvancedDaemonSetStrategy}
        )
        self._discovery = Discovery(self.state.kinds)
        self._watches: set[Watch] = set()
        self.store.observe(CUSTOM_RESOURCE_DEFINITIONS, self._crd_changed)
        EventExpiry(self.store, clock)
        for record in self.store.collection(CUSTOM_RESOURCE_DEFINITIONS).scan():
            self._serve_crd(record)
        if not self.store.collection("namespaces"):
            for path, obj in bootstrap_objects():
                self._answer(Request("POST", path, body=msgspec.json.encode(obj)))

    @property
    def store(self) -> Store:
        """The object store."""
        return self.state.store

    async def handle(
        self, http: Request, *, agent: str = "", arrived: float | None = None
    ) -> Response:
        """Handle any request but a watch.

        `agent` is the User-Agent, if known; `arrived` is the monotonic time of arrival, from which
        the request's `timeout` counts.
        """
        try:
            seconds = write_timeout(http)
            if seconds is not None and arrived is not None:
                seconds -= self.state.clock.monotonic() - arrived
            if seconds is not None and seconds <= 0:
                raise timed_out()
            if self.state.store.journal is None:
                return self._answer(http, agent)  # every write is durable at once
            async with asyncio.timeout(seconds):
                return await self._answer_when_durable(http, agent, self.state.store.journal)
        except StatusError as refusal:
            return refusal.response()
        except TimeoutError:
            return timed_out().response()
        except Exception as error:
            return self._unexpected_error(http, error)

    async def open(self, http: Request) -> Response | Watch:
        """Start a watch; other requests, and those that fail, get a complete response."""
        try:
            request = self._locate(http)
            if request is None or request.name or "watch" not in request.kind.verbs:
                return await self.handle(http)
            watch = read.watch(request)
        except StatusError as refusal:
            return refusal.response()
        except Exception as error:
            return self._unexpected_error(http, error)
        self._watches.add(watch)
        watch.on_close = self._watches.discard
        return watch

    @property
    def open_watches(self) -> int:
        """Number of open watches."""
        return len(self._watches)

    def stop(self) -> None:
        """End every watch."""
        for watch in list(self._watches):
            watch.close()

    def _unexpected_error(self, http: Request, error: Exception) -> Response:
        """Answer an unexpected exception with 500 and log one line about it."""
        if error is not self.state.store.error:  # Server.broken reports that one
            method, path = clean(http.method), clean(http.path)
            _LOG.error("request failed: %s %s: %s", method, path, describe(error))
        return internal_error(f"{type(error).__name__}: {clean(str(error))}").response()

    async def _answer_when_durable(
        self, http: Request, agent: str, journal: JournalWriter
    ) -> Response:
        """Handle a request and answer once everything it wrote or read is durable.

        A response must not show a write that a crash could lose.
        """
        if http.method != "GET":
            await journal.wait_for_capacity()
        try:
            return self._answer(http, agent)
        finally:
            await self.state.store.wait_durable()

    def _answer(self, http: Request, agent: str = "") -> Response:
        if http.path in HEALTH:
            return Response(200, b"ok", _TEXT)
        place = resolve_path(http.path, self.state.kinds)
        if place is None:
            return self._discovery_answer(http)
        request = ApiRequest(self.state, with_valid_unicode(http), place, agent=agent)
        try:
            if http.method != "GET":
                # An unacceptable Accept header is an error before anything is written.
                representation_for(request)
            response = self._choose_verb(request)(request)
        except StatusError as refusal:
            response = refusal.response()
        except msgspec.ValidationError as error:
            response = bad_request(f"the object cannot be read: {error}").response()
        except RecursionError:
            if not http.body:
                raise
            response = bad_request("the body cannot be read: it is nested too deeply").response()
        return _with_warnings(response, request.warnings) if request.warnings else response

    def _discovery_answer(self, http: Request) -> Response:
        """Answer a path that names no resource: discovery, OpenAPI, or 404."""
        answer = self._discovery.answer(http.path, http.accept)
        if answer is not None:
            return answer if http.method == "GET" else method_not_allowed().response()
        match http.path.split("/")[1:]:
            case ["api", _, *_]:
                return unknown_resource().response()
            case ["apis", group, _, *_] if any(kind.group == group for kind in self.state.kinds):
                return unknown_resource().response()
        return _NO_PAGE

    def _choose_verb(self, request: ApiRequest) -> Verb:
        if request.name in _DOT_NAMES or "%" in request.name:
            why = "may not contain '%'" if "%" in request.name else f"may not be '{request.name}'"
            raise bad_request(f"Name parameter invalid: {quote(request.name)}: {why}")
        if request.subresource:
            return subresources.choose_verb(request)
        method = request.http.method
        verbs = _OBJECT_VERBS if request.name else _COLLECTION_VERBS
        found = verbs.get(method)
        if found is None or found[0] not in request.kind.verbs:
            if request.name and not any(verb in request.kind.verbs for verb, _ in verbs.values()):
                raise unknown_resource()
            raise method_not_allowed()
        if request.kind.namespaced and not request.namespace and method != "GET":
            raise method_not_allowed()
        return _NOT_STORED.get(request.kind.storage, found[1])

    def _locate(self, http: Request) -> ApiRequest | None:
        place = resolve_path(http.path, self.state.kinds)
        return None if place is None else ApiRequest(self.state, http, place)

    def _serve_crd(self, record: Record) -> None:
        """Serve the resource of a stored CRD; log and skip a CRD that cannot be served."""
        try:
            self._definitions.serve_definition(record.name, record.body)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _LOG.error(
                "the CustomResourceDefinition %s cannot be served, its objects are kept: %s; "
                "replace or delete it",
                record.name,
                reason,
            )

    def _crd_changed(self, change: Change) -> None:
        """Follow the changes of CRDs; removing one removes all objects of its kind."""
        if change.type != "DELETED":
            self._serve_crd(change.record)  # it was validated before it was stored
            return
        for kind in self._definitions.forget(change.record.name):
            collection = self.store.collection(kind.storage)
            for record in list(collection.scan()):
                self.store.remove(collection, record)


def _with_warnings(response: Response, warnings: list[str]) -> Response:
    """Return the response with Warning headers."""
    shown = ", ".join(f"299 - {msgspec.json.encode(text).decode()}" for text in warnings)
    return replace(response, headers={**response.headers, "warning": shown})
