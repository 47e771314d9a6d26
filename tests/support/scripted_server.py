"""Manual clock and scripted server, for tests without a cluster."""

from __future__ import annotations

import asyncio
import heapq
import json
import types
from collections.abc import Generator
from typing import Any

from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError


@types.coroutine
def give_way() -> Generator[None, None, None]:
    yield


class ManualClock:
    """A clock that only the test advances; random draws always return the highest value."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._offset = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now + self._offset

    def monotonic(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._offset += seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await give_way()
            return
        self._count += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, future))
        await future

    def uid(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-8000-{self._count:012d}"

    def name_suffix(self, length: int = 5) -> str:
        return "x" * length

    def jitter(self, low: float, high: float) -> float:
        return high

    async def quiet(self) -> None:
        """Run all tasks until each of them waits."""
        for _ in range(50):
            await give_way()

    async def advance(self, seconds: float) -> None:
        await self.quiet()
        target = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            when, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                self._now = max(self._now, when)
                future.set_result(None)
                await self.quiet()
        self._now = target
        await self.quiet()


class ScriptedStream:
    """A stream fed by the test."""

    def __init__(self, *events: object, status: int = 200, body: bytes = b"") -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.closed = False
        self._body = body
        self._lines: asyncio.Queue[bytes | TransportError] = asyncio.Queue()
        for event in events:
            self.say(event)

    def say(self, event: object) -> None:
        line = event if isinstance(event, bytes) else json.dumps(event, separators=(",", ":"))
        self._lines.put_nowait(line if isinstance(line, bytes) else line.encode())

    def end(self) -> None:
        self._lines.put_nowait(b"")

    def tear(self) -> None:
        self._lines.put_nowait(TransportError("connection reset", sent=True))

    async def readline(self) -> bytes:
        line = await self._lines.get()
        if isinstance(line, TransportError):
            raise line
        return line

    async def read(self) -> bytes:
        return self._body

    async def close(self) -> None:
        self.closed = True


Reply = Response | TransportError | ScriptedStream


class ScriptedTransport:
    """Answers each request with the next scripted response; after the last one it never answers."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        reply = await self._next(request)
        assert isinstance(reply, Response), f"a stream was scripted for {request}"
        return reply

    async def open(self, request: Request) -> ScriptedStream:
        reply = await self._next(request)
        if isinstance(reply, Response):
            stream = ScriptedStream(status=reply.status, body=reply.body)
            stream.headers = reply.headers
            return stream
        assert isinstance(reply, ScriptedStream)
        return reply

    async def close(self) -> None:
        pass

    async def _next(self, request: Request) -> Reply:
        self.requests.append(request)
        if not self.script:
            await asyncio.get_running_loop().create_future()
        reply = self.script.pop(0)
        if isinstance(reply, TransportError):
            raise reply
        return reply


def failure(code: int, reason: str = "", message: str = "", **details: Any) -> Response:
    """An error response of the server."""
    return Response(code, json.dumps(status(code, reason, message, **details)).encode())


def status(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


def node(name: str, version: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "labels": labels,
        },
    }


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


def bookmark(version: int, *, initial_end: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Node", "apiVersion": "v1", "metadata": meta})


def page(version: int, *items: dict[str, Any], token: str = "") -> Response:
    meta = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    body = {"kind": "NodeList", "apiVersion": "v1", "metadata": meta, "items": list(items)}
    return Response(200, json.dumps(body).encode())
