"""Ending namespaces: first what is in them, then they themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from everynode.api.objects import Partial
from everynode.clock import Clock
from everynode.cluster.machinery.kinds import Kinds, discover
from everynode.cluster.machinery.timers import Timers
from everynode.cluster.machinery.writes import ask
from everynode.kube import verbs
from everynode.kube.cache import Cache
from everynode.kube.client import decode_page
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import NAMESPACES, PODS, Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import Scope
from everynode.kube.watch import Watcher

_LOG: Final = logging.getLogger(__name__)
FINALIZER: Final = "kubernetes"
_AGAIN: Final = 0.5  # seconds until what is left of a namespace is looked at again


class _Meta(Partial, frozen=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None


class _Spec(Partial, frozen=True):
    finalizers: tuple[str, ...] = ()


class Namespace(Partial, frozen=True):
    """A namespace as far as its end is concerned."""

    metadata: _Meta
    spec: _Spec = _Spec()


_decode: Final[Callable[[bytes], Namespace]] = msgspec.json.Decoder(Namespace).decode


class NamespaceController:
    """Empties namespaces that are being deleted, then lets them go."""

    def __init__(self, transport: Transport, clock: Clock, *, timers: Timers) -> None:
        self._transport = transport
        self._timers = timers
        self._namespaces: Cache[Namespace] = Cache()
        self._namespaces.subscribe(self._on_namespace)
        self._watcher = Watcher(
            transport, clock, resource=NAMESPACES, decode=_decode, consumer=self._namespaces
        )
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: dict[str, None] = {}
        self._kinds: dict[str, Kinds] = {}  # of namespaces that are on their way out

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.run())
            while True:
                name = await self._queue.get()
                self._queued.pop(name, None)
                namespace = self._namespaces.get(name)
                if namespace is not None and _ends(namespace):
                    await self._end(namespace)

    def _on_namespace(self, before: Namespace | None, after: Namespace | None) -> None:
        if after is not None and _ends(after):
            self._enqueue(after.metadata.name)
        elif before is not None:
            self._kinds.pop(before.metadata.name, None)

    def _enqueue(self, name: str) -> None:
        if name not in self._queued:
            self._queued[name] = None
            self._queue.put_nowait(name)

    async def _end(self, namespace: Namespace) -> None:
        name = namespace.metadata.name
        try:
            if await self._empty(name):
                await self._finalize(namespace)
                return
        except NotFound:
            return
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
        self._timers.after(_AGAIN, partial(self._enqueue, name))

    async def _empty(self, name: str) -> bool:
        """Remove everything; pods first, as others may be needed by them. Is nothing left?"""
        if not await self._clear(PODS, name):
            return False
        kinds = self._kinds.get(name)
        if kinds is None:
            kinds = self._kinds[name] = await discover(self._transport)
        left = [
            resource
            for resource in kinds.all
            if resource.namespaced and resource != PODS and not await self._clear(resource, name)
        ]
        return not left

    async def _clear(self, resource: Resource, namespace: str) -> bool:
        """Delete what there is of a kind; whether there is nothing left."""
        if not await self._any(resource, namespace):
            return True
        options = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'
        answer = await ask(
            self._transport, Request("DELETE", resource.path(namespace), body=options)
        )
        if isinstance(answer, KubeError):
            raise answer
        return not await self._any(resource, namespace)

    async def _any(self, resource: Resource, namespace: str) -> bool:
        page = verbs.list_page(resource, scope=Scope(namespace), limit=1)
        answer = await ask(self._transport, page)
        if isinstance(answer, NotFound):
            return False  # the kind is gone, and its objects with it
        if isinstance(answer, KubeError):
            raise answer
        return bool(decode_page(answer.body).items)

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
        answer = await ask(self._transport, request)
        if isinstance(answer, KubeError):
            raise answer


def _ends(namespace: Namespace) -> bool:
    ending = namespace.metadata.deletion_timestamp is not None
    return ending and FINALIZER in namespace.spec.finalizers
