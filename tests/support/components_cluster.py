"""Embedded cluster with its components, in process and on virtual time."""

from __future__ import annotations

import asyncio
import functools
import json
import random
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

from everynode.api.keys import NAME_ALPHABET
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.kube import verbs
from everynode.kube.errors import from_response
from everynode.kube.requests import STRATEGIC_PATCH, Request, Response
from everynode.kube.resources import EVENTS, NODES, PODS, Resource
from everynode.kube.transport import Stream, Transport, TransportError
from everynode.sim.engine import loop

Object = dict[str, Any]
P = ParamSpec("P")
START = 1_700_000_000.0


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        loop.run(test(*args, **kwargs))

    return run


class LoopClock:
    """The clock of the running loop, with seeded random numbers."""

    def __init__(self) -> None:
        self._random = random.Random(7)

    def now(self) -> float:
        return START + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def name_suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(NAME_ALPHABET, k=length))

    def jitter(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


class Ledger:
    """A transport that records every write.

    `lag` delays each response by this many seconds, so that watches deliver the change first.
    `loss` is the fraction of requests that never arrive, and of responses that are lost.
    """

    def __init__(self, below: Transport, *, lag: float = 0.0, loss: float = 0.0) -> None:
        self._lag = lag
        self._loss = loss
        self._random = random.Random(5)
        self.writes: list[Request] = []
        self.sent = 0
        self._below = below

    async def send(self, request: Request) -> Response:
        self.sent += 1
        if verbs.is_write(request):
            self.writes.append(request)
        if self._random.random() < self._loss:
            raise TransportError("the request was lost", sent=False)
        answer = await self._below.send(request)
        if self._random.random() < self._loss:
            raise TransportError("the answer was lost", sent=True)
        if self._lag:
            await asyncio.sleep(self._lag)
        return answer

    async def open(self, request: Request) -> Stream:
        return await self._below.open(request)

    async def close(self) -> None:
        await self._below.close()

    def paths(self, *, without: Iterable[str] = ("events",)) -> list[str]:
        """Method and last part of the path of each write, in order."""
        shown = [f"{each.method} {each.path.rpartition('/')[2]}" for each in self.writes]
        return [each for each in shown if each.partition(" ")[2] not in without]


class World:
    """An API server with the cluster's components, and helpers for tests."""

    def __init__(
        self, api: Api, clock: LoopClock, options: ComponentOptions, ledger: Ledger
    ) -> None:
        self.api = api
        self.clock = clock
        self.ledger = ledger
        self.components = Components(self.ledger, clock, options)
        self._transport = LocalTransport(api)

    async def ask(self, request: Request) -> Object:
        response = await self._transport.send(request)
        if not response.ok:
            raise from_response(request, response)
        found: Object = json.loads(response.body)
        return found

    async def create(self, resource: Resource, body: Object, namespace: str = "default") -> Object:
        return await self.ask(verbs.create(resource, body, namespace=namespace))

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        return await self.ask(verbs.get(resource, name, namespace=namespace))

    async def all(self, resource: Resource) -> list[Object]:
        found = await self.ask(verbs.list_page(resource, limit=0))
        return list(found["items"])

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        kind: str = STRATEGIC_PATCH,
        subresource: str = "",
    ) -> Object:
        return await self.ask(
            verbs.patch(
                resource, name, body, kind=kind, namespace="default", subresource=subresource
            )
        )

    async def delete(self, resource: Resource, name: str, **options: Any) -> Object:
        return await self.ask(verbs.delete(resource, name, namespace="default", **options))

    async def annotate_node(self, name: str, **annotations: str | None) -> None:
        written = {
            f"sim.everynode.io/{key.replace('_', '-')}": value for key, value in annotations.items()
        }
        await self.patch(NODES, name, {"metadata": {"annotations": written}})

    async def pod(self, name: str) -> Object:
        return await self.get(PODS, name)

    async def pod_names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in await self.all(PODS)]

    async def reasons(self, name: str) -> list[str]:
        """The reasons of all events about an object, in the order they were written."""
        events = [each for each in await self.all(EVENTS) if each["involvedObject"]["name"] == name]
        events.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [each["reason"] for each in events]

    async def rows(self, lines: list[str]) -> None:
        """Append the lines that `kubectl get pods --watch` would print, each change once."""
        stream = await self._transport.open(verbs.watch(PODS, version="", seconds=10_000))
        while line := await stream.readline():
            event = json.loads(line)
            if event["type"] != "BOOKMARK" and lines[-1:] != [_row(event["object"])]:
                lines.append(_row(event["object"]))

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, holds: Callable[[], Any], within: float = 120.0) -> float:
        """Advance time until a condition holds; return how long it took."""
        began = self.clock.monotonic()
        while not await _value(holds):
            assert self.clock.monotonic() - began < within, "it did not happen in time"
            await asyncio.sleep(0.05)
        return self.clock.monotonic() - began

    async def ready(self, name: str, within: float = 120.0) -> Object:
        """Advance time until a pod is Ready."""

        async def is_ready() -> bool:
            found: str = condition(await self.pod(name), "Ready")["status"]
            return found == "True"

        await self.until(is_ready, within)
        return await self.pod(name)

    async def gone(self, name: str, within: float = 120.0) -> float:
        async def is_gone() -> bool:
            return name not in await self.pod_names()

        return await self.until(is_gone, within)


def _row(pod: Object) -> str:
    """READY, STATUS, IP and NODE as kubectl prints them."""
    status = pod["status"]
    containers = status.get("containerStatuses") or []
    ready = sum(each["ready"] for each in containers)
    text = status["phase"]
    for each in containers:
        text = each["state"].get("waiting", {}).get("reason", text)
    if "deletionTimestamp" in pod["metadata"]:
        text = "Terminating"
    total = len(pod["spec"]["containers"])
    address, node = status.get("podIP", "<none>"), pod["spec"].get("nodeName", "<none>")
    return f"{ready}/{total} {text} {address} {node}"


async def _value(holds: Callable[[], Any]) -> bool:
    found = holds()
    return bool(await found if asyncio.iscoroutine(found) else found)


@asynccontextmanager
async def running(
    options: ComponentOptions | None = None, *, api: Api | None = None, **troubles: float
) -> AsyncIterator[World]:
    """A cluster whose nodes are registered."""
    clock = LoopClock()
    api = api or Api(clock=clock)
    ledger = Ledger(LocalTransport(api), **troubles)
    world = World(api, clock, options or ComponentOptions(nodes=3), ledger)
    task = asyncio.ensure_future(world.components.run())
    ready = asyncio.ensure_future(world.components.ready())
    try:
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        await asyncio.sleep(1)
        yield world
        if task.done():
            task.result()
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.wait((task, ready))


def condition(obj: Object, kind: str) -> Object:
    """The condition of a type; one with status Unknown if there is none."""
    found = obj.get("status", {}).get("conditions") or []
    return next((each for each in found if each["type"] == kind), {"status": "Unknown"})


def pod_body(
    name: str,
    *,
    image: str = "agent:v1",
    node: str = "",
    annotations: dict[str, str] | None = None,
    finalizers: list[str] | None = None,
    owners: list[Object] | None = None,
    **spec: Any,
) -> Object:
    """A pod, pinned to a node by its affinity if one is named."""
    meta: Object = {"name": name, "labels": {"app": "agent"}}
    for key, value in (
        ("annotations", annotations),
        ("finalizers", finalizers),
        ("ownerReferences", owners),
    ):
        if value:
            meta[key] = value
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "agent", "image": image}], **spec},
    }
    if node:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        body["spec"]["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    return body
