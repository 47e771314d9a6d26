"""API client for tests: short functions to send requests and to read responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from everynode.apiserver.storage.store import Store
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.kube.requests import JSON, MERGE_PATCH, Request, Response
from everynode.kube.transport import Stream

Object = dict[str, Any]

CORE = "/api/v1"
PODS = f"{CORE}/namespaces/default/pods"
MAPS = f"{CORE}/namespaces/default/configmaps"
SETS = "/apis/apps/v1/namespaces/default/daemonsets"
ADVANCED = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = f"{CORE}/namespaces/default/events"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class StillClock:
    """A clock that only the test advances; uids and name suffixes count up, none is random."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0
        self._ids = 0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += max(0.0, seconds)
        waiting = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(waiting.set_result, None)
        await waiting

    def uid(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012d}"

    def name_suffix(self, length: int = 5) -> str:
        self._ids += 1
        return str(self._ids).rjust(length, "x")

    def jitter(self, low: float, high: float) -> float:
        return low


class Answer:
    """A decoded response."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self.raw = response.body

    @property
    def body(self) -> Object:
        decoded: Object = json.loads(self.raw)
        return decoded

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Watching:
    """A watch, read event by event."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    async def event(self) -> tuple[str, Object]:
        line = await asyncio.wait_for(self.stream.readline(), 60)
        assert line, "the watch has ended"
        event = json.loads(line)
        return event["type"], event["object"]

    async def events(self, number: int) -> list[tuple[str, str]]:
        """Types and names of the next events."""
        found = [await self.event() for _ in range(number)]
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in found]

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.stream.readline(), 60) == b""


class Cluster:
    """An embedded API server for one test."""

    def __init__(self, store: Store | None = None) -> None:
        self.clock = StillClock()
        self.api = Api(clock=self.clock, store=store)
        self.transport = LocalTransport(self.api)

    async def ask(
        self,
        method: str,
        path: str,
        body: Object | list[Any] | bytes | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        where, _, query = path.partition("?")
        sent = body if isinstance(body, bytes) else b"" if body is None else _encode(body)
        pairs = tuple(parse_qsl(query, keep_blank_values=True))
        request = Request(method, where, pairs, sent, content_type, accept)
        return Answer(await self.transport.send(request))

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)

    async def read(self, path: str) -> Object:
        answer = await self.get(path)
        assert answer.status == 200, answer.raw
        return answer.body

    async def post(self, path: str, body: Object) -> Answer:
        return await self.ask("POST", path, body)

    async def create(self, path: str, body: Object) -> Object:
        answer = await self.post(path, body)
        assert answer.status == 201, answer.raw
        return answer.body

    async def put(self, path: str, body: Object) -> Answer:
        return await self.ask("PUT", path, body)

    async def patch(
        self, path: str, body: Object | list[Any], content_type: str = MERGE_PATCH
    ) -> Answer:
        return await self.ask("PATCH", path, body, content_type=content_type)

    async def delete(self, path: str, options: Object | None = None) -> Answer:
        return await self.ask("DELETE", path, options)

    async def watch(self, path: str, *, accept: str = JSON) -> Watching:
        where, _, query = path.partition("?")
        pairs = (("watch", "true"), *parse_qsl(query, keep_blank_values=True))
        stream = await self.transport.open(Request("GET", where, pairs, accept=accept))
        assert stream.status == 200, await stream.read()
        return Watching(stream)


def _encode(body: Object | list[Any]) -> bytes:
    return msgspec.json.encode(body)


def pod(name: str = "p", **spec: Any) -> Object:
    containers = [{"name": "c", "image": "agent:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def bound(name: str = "p", **spec: Any) -> Object:
    return pod(name, nodeName="n1", **spec)


def config_map(name: str = "m", **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


def daemonset(name: str = "agent", **spec: Any) -> Object:
    labels = {"app": name}
    containers = [{"name": "c", "image": "agent:1"}]
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            **spec,
        },
    }


def definition(plural: str = "widgets", kind: str = "Widget", **version: Any) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                },
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    return {
        "metadata": {"name": f"{plural}.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    **version,
                }
            ],
        },
    }
