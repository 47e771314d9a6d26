"""Ending namespaces: first what is in them, then they themselves."""

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
from everynode.cluster.machinery.kinds import Kinds, discover
from everynode.cluster.machinery.remains import Item, Remains, age, read_item
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


class _Status(Partial, frozen=True):
    conditions: list[dict[str, Any]] | None = None


class Namespace(Partial, frozen=True):
    """A namespace as far as its end is concerned."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode: Final[Callable[[bytes], Namespace]] = msgspec.json.Decoder(Namespace).decode


class NamespaceController:
    """Empties namespaces that are being deleted, then lets them go."""

    def __init__(self, transport: Transport, clock: Clock, *, timers: Timers) -> None:
        self._transport = transport
        self._clock = clock
        self._timers = timers
        self._namespaces: Cache[Namespace] = Cache()
        self._namespaces.subscribe(self._on_namespace)
        self._watcher = Watcher(
            transport, clock, resource=NAMESPACES, decode=_decode, consumer=self._namespaces
        )
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: dict[str, None] = {}
        self._later: dict[str, None] = {}  # looked at again when their timer says so
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
            remains = await self._empty(namespace)
            namespace = await self._tell(namespace, remains)
            if not remains:
                await self._finalize(namespace)
                return
        except NotFound:
            return
        except KubeError as error:
            _LOG.warning("%s, trying again", error)
        if name not in self._later:
            self._later[name] = None
            self._timers.after(_AGAIN, partial(self._again, name))

    def _again(self, name: str) -> None:
        self._later.pop(name, None)
        self._enqueue(name)

    async def _empty(self, namespace: Namespace) -> Remains:
        """Remove everything; pods first, as others may be needed by them. What is left?"""
        name = namespace.metadata.name
        since = namespace.metadata.deletion_timestamp
        remains = Remains(name, seconds=age(since, self._clock.now()))
        remains.add(PODS, await self._clear(PODS, name))
        if remains:
            return remains
        kinds = self._kinds.get(name)
        if kinds is None:
            kinds = self._kinds[name] = await discover(self._transport)
        for resource in kinds.all:
            if resource.namespaced and resource != PODS:
                remains.add(resource, await self._clear(resource, name))
        return remains

    async def _tell(self, namespace: Namespace, remains: Remains) -> Namespace:
        """Write down how far it has come, if that is new; the namespace as it is then."""
        before = namespace.status.conditions or []
        conditions = remains.conditions(before, format_time(self._clock.now()))
        if conditions == before:
            return namespace
        meta = namespace.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {"conditions": conditions},
        }
        request = verbs.patch(NAMESPACES, meta.name, body, subresource="status")
        answer = await ask(self._transport, request)
        if isinstance(answer, KubeError):
            raise answer
        return _decode(answer.body)

    async def _clear(self, resource: Resource, namespace: str) -> list[Item]:
        """Delete what there is of a kind; what is left of it."""
        if not await self._some(resource, namespace, limit=1):
            return []
        options = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'
        answer = await ask(
            self._transport, Request("DELETE", resource.path(namespace), body=options)
        )
        if isinstance(answer, KubeError):
            raise answer
        return await self._some(resource, namespace, limit=0)

    async def _some(self, resource: Resource, namespace: str, *, limit: int) -> list[Item]:
        page = verbs.list_page(resource, scope=Scope(namespace), limit=limit)
        answer = await ask(self._transport, page)
        if isinstance(answer, NotFound):
            return []  # the kind is gone, and its objects with it
        if isinstance(answer, KubeError):
            raise answer
        return [read_item(resource, raw) for raw in decode_page(answer.body).items]

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
