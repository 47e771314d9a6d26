"""Namespace controller: deletes the contents of terminating namespaces, then finalizes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from everynode.api.objects import Partial
from everynode.api.times import format_time
from everynode.clock import Clock
from everynode.components.controllers.namespace_contents import (
    RemainingContent,
    RemainingObject,
    read_object,
    seconds_since,
)
from everynode.components.discovery import ServerResources, discover
from everynode.components.guard import GuardedCache, log_error
from everynode.components.request_queue import send_request
from everynode.components.timers import Timers
from everynode.kube import verbs
from everynode.kube.client import UNREADABLE, decode_page
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import NAMESPACES, PODS, Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.watcher import Watcher

_LOG: Final = logging.getLogger(__name__)
FINALIZER: Final = "kubernetes"
_RETRY: Final = 0.5  # seconds until a namespace that still has contents is tried again


class _NamespaceMeta(Partial, frozen=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None


class _NamespaceSpec(Partial, frozen=True):
    finalizers: tuple[str, ...] = ()


class _NamespaceStatus(Partial, frozen=True):
    conditions: list[dict[str, Any]] | None = None


class Namespace(Partial, frozen=True):
    """The fields of a Namespace that its deletion needs."""

    metadata: _NamespaceMeta
    spec: _NamespaceSpec = _NamespaceSpec()
    status: _NamespaceStatus = _NamespaceStatus()


_decode: Final[Callable[[bytes], Namespace]] = msgspec.json.Decoder(Namespace).decode


class NamespaceController:
    """Deletes the contents of terminating namespaces, then removes their finalizer."""

    def __init__(self, transport: Transport, clock: Clock, *, timers: Timers) -> None:
        self._transport = transport
        self._clock = clock
        self._timers = timers
        self._namespaces: Cache[Namespace] = GuardedCache()
        self._namespaces.subscribe(self._on_namespace)
        self._watcher = Watcher(
            transport, clock, resource=NAMESPACES, decode=_decode, consumer=self._namespaces
        )
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: dict[str, None] = {}
        self._retrying: dict[str, None] = {}  # namespaces with a timer
        # Discovered once per terminating namespace.
        self._resources: dict[str, ServerResources] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.run())
            while True:
                name = await self._queue.get()
                self._queued.pop(name, None)
                namespace = self._namespaces.get(name)
                if namespace is not None and _needs_finalizing(namespace):
                    await self._delete_contents(namespace)

    def _on_namespace(self, before: Namespace | None, after: Namespace | None) -> None:
        if after is not None and _needs_finalizing(after):
            self._enqueue(after.metadata.name)
        elif before is not None:
            self._resources.pop(before.metadata.name, None)

    def _enqueue(self, name: str) -> None:
        if name not in self._queued:
            self._queued[name] = None
            self._queue.put_nowait(name)

    async def _delete_contents(self, namespace: Namespace) -> None:
        name = namespace.metadata.name
        try:
            remaining = await self._delete_all(namespace)
            namespace = await self._write_conditions(namespace, remaining)
            if not remaining:
                await self._finalize(namespace)
                return
        except NotFound:
            return
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
        except Exception as error:
            log_error(error)
        if name not in self._retrying:
            self._retrying[name] = None
            self._timers.call_later(_RETRY, partial(self._retry_later, name))

    def _retry_later(self, name: str) -> None:
        self._retrying.pop(name, None)
        self._enqueue(name)

    async def _delete_all(self, namespace: Namespace) -> RemainingContent:
        """Delete everything, pods first, as they may use the rest; returns what is left."""
        name = namespace.metadata.name
        since = namespace.metadata.deletion_timestamp
        remaining = RemainingContent(name, seconds=seconds_since(since, self._clock.now()))
        remaining.add(PODS, await self._delete_collection(PODS, name))
        if remaining:
            return remaining
        resources = self._resources.get(name)
        if resources is None:
            resources = self._resources[name] = await discover(self._transport)
        for resource in resources.all:
            if resource.namespaced and resource != PODS:
                remaining.add(resource, await self._delete_collection(resource, name))
        return remaining

    async def _write_conditions(
        self, namespace: Namespace, remaining: RemainingContent
    ) -> Namespace:
        """Write the conditions if they have changed; returns the namespace after that."""
        before = namespace.status.conditions or []
        conditions = remaining.conditions(before, format_time(self._clock.now()))
        if conditions == before:
            return namespace
        meta = namespace.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {"conditions": conditions},
        }
        request = verbs.patch(NAMESPACES, meta.name, body, subresource="status")
        result = await send_request(self._transport, request)
        if isinstance(result, KubeError):
            raise result
        try:
            return _decode(result.body)
        except UNREADABLE as error:
            raise KubeError(f"the response cannot be decoded: {error}") from None

    async def _delete_collection(self, resource: Resource, namespace: str) -> list[RemainingObject]:
        """Delete all objects of a resource; returns those that are left."""
        if not await self._list(resource, namespace, limit=1):
            return []
        options = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'
        result = await send_request(
            self._transport, Request("DELETE", resource.path(namespace), body=options)
        )
        if isinstance(result, KubeError):
            raise result
        return await self._list(resource, namespace, limit=0)

    async def _list(
        self, resource: Resource, namespace: str, *, limit: int
    ) -> list[RemainingObject]:
        page = verbs.list_page(resource, options=ListOptions(namespace), limit=limit)
        result = await send_request(self._transport, page)
        if isinstance(result, NotFound):
            return []  # the resource is gone, and its objects with it
        if isinstance(result, KubeError):
            raise result
        try:
            found = decode_page(result.body).items
        except UNREADABLE as error:
            raise KubeError(f"the list cannot be decoded: {error}") from None
        return [_read_object(resource, raw) for raw in found]

    async def _finalize(self, namespace: Namespace) -> None:
        meta = namespace.metadata
        left = [each for each in namespace.spec.finalizers if each != FINALIZER]
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": meta.name,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
            "spec": {"finalizers": left},
        }
        request = verbs.replace(NAMESPACES, meta.name, body, subresource="finalize")
        result = await send_request(self._transport, request)
        if isinstance(result, KubeError):
            raise result


def _read_object(resource: Resource, raw: msgspec.Raw) -> RemainingObject:
    """Decode an object; one that cannot be decoded still counts."""
    try:
        return read_object(resource, raw)
    except UNREADABLE:
        return RemainingObject()


def _needs_finalizing(namespace: Namespace) -> bool:
    ending = namespace.metadata.deletion_timestamp is not None
    return ending and FINALIZER in namespace.spec.finalizers
