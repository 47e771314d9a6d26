"""How one process reaches the server: where requests are lost, held, repeated and refused."""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec

from everynode.api import keys
from everynode.cluster.local import LocalStream, WholeStream
from everynode.cluster.rest import Api
from everynode.cluster.watches import Watch, line
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, TransportError
from everynode.sim.clock import Killed, SimClock
from everynode.sim.plan import Happening
from everynode.sim.record import Asked, Record
from everynode.sim.weather import Sky

_VERSION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
_LATENCY: Final = (0.0002, 0.003)
_REMEMBERED: Final = 20  # lines that can come again
# A decision is at most this much older than the request that carries it out.
_THINKING: Final = 0.05
_HOLDING: Final = 2.0  # seconds between two looks whether a stream is still held
_TRAILING: Final = 0.2  # seconds between two looks at how far behind a stream is
_WATCHED: Final = ("nodes", "pods", "controllerrevisions", "daemonsets")
_NOTHING: Final[Mapping[str, int]] = {}


def status_body(code: int, reason: str, message: str, details: object = None) -> bytes:
    """A Status as the server words refusals."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details or {},
        "code": code,
    }
    return msgspec.json.encode(status)


_REASONS: Final = {
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def refusal(code: int, message: str = "simulated", details: object = None) -> Response:
    """An answer that says no."""
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    return Response(code, status_body(code, _REASONS[code], message, details), headers)


def refused(code: int, why: str) -> Response:
    """An answer that says no, in the words of whoever refuses."""
    message, reason = _WORDS.get(why, ("simulated", ""))
    details = {"causes": [{"reason": reason, "message": message}]} if reason else None
    return refusal(code, message, details)


_WORDS: Final = {
    "deny-pods": ('admission webhook "policy.example.com" denied the request: not today', ""),
    "quota": ("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1", ""),
    "namespace-ending": (
        "unable to create new content in namespace default because it is being terminated",
        "NamespaceTerminating",
    ),
}


def plural_of(path: str) -> str:
    """The kind that a path is about."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return parts[0] if parts else ""


def _kind_of(path: str) -> str:
    """The kind that a path is about, as the store calls it."""
    parts = path.strip("/").split("/")
    return plural_of(path) if parts[0] == "api" else f"{plural_of(path)}.{parts[1]}"


def _watch_of(request: Request) -> tuple[str, str]:
    """What is watched or listed: the path, and the labels that are asked for."""
    return request.path, next((value for key, value in request.query if key == "labelSelector"), "")


class Mortal(Protocol):
    """The process behind a door."""

    def crash(self, why: str) -> None:
        """Die at once."""
        ...


class Door:
    """The transport of one process. Without a sky above it nothing goes wrong."""

    def __init__(
        self,
        api: Api,
        record: Record,
        *,
        name: str,
        clock: SimClock,
        seed: object = 0,
        sky: Sky | None = None,
        process: Mortal | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.dead = False
        self._api = api
        self._record = record
        self._random = random.Random(f"{seed}/{name}/door")
        self._sky = sky
        self._process = process
        self._streams: dict[int, SimStream] = {}
        self._opened = 0
        # What was delivered to the process, by watch: when, and up to which version.
        self._told: dict[tuple[str, str], deque[tuple[float, int]]] = {}
        self._watched: dict[tuple[str, str], str] = {}  # the kinds

    # --- Transport -----------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Carry a request there and its answer back."""
        self._check()
        sky = self._sky
        if sky is None:
            await self.clock.sleep(0)
            return await self._serve(request)
        floor, sent_at = self._floors(), self.clock.monotonic()
        await self.clock.pause(self._random.uniform(*_LATENCY))  # it is on its way
        self._reachable(sky, request)
        fault = sky.fault_of_call(self.name, request)
        if fault is not None:
            return await self._strike(fault, request, floor, sent_at)
        response = await self._serve(sky.altered(request), floor=floor, sent_at=sent_at)
        await self.clock.sleep(self._random.uniform(*_LATENCY))
        self._reachable(sky, request)
        self._tell_list(request, response)
        return response

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        self._check()
        if self._sky is None:
            await self.clock.sleep(0)
            answer = await self._api.open(request)
            return LocalStream(answer) if isinstance(answer, Watch) else WholeStream(answer)
        await self.clock.sleep(self._random.uniform(*_LATENCY))
        self._reachable(self._sky, request)
        refused = self._sky.refused_watch(request)
        if refused:
            return WholeStream(refusal(refused))
        answer = await self._api.open(request)
        if not isinstance(answer, Watch):
            return WholeStream(answer)
        self._opened += 1
        watched = _watch_of(request)
        if watched[1] != keys.PULLER:  # which are no daemon pods
            self._watched[watched] = _kind_of(request.path)
        stream = SimStream(answer, self, self._sky, watched)
        self._streams[self._opened] = stream
        stream.forget = self._forgetter(self._opened)
        return stream

    async def close(self) -> None:
        """Nothing is held."""

    def _forgetter(self, key: int) -> Callable[[], None]:
        def forget() -> None:
            self._streams.pop(key, None)

        return forget

    # --- The server's side -----------------------------------------------------------------------

    async def _serve(
        self,
        request: Request,
        *,
        floor: Mapping[str, int] = _NOTHING,
        sent_at: float | None = None,
        arrived: float | None = None,
    ) -> Response:
        time = self.clock.monotonic()
        sent_at = time if sent_at is None else sent_at
        known = min(floor.values(), default=0)
        asked = Asked(self.name, request, time, self.clock.now(), sent_at, known, floor)
        record = self._record
        record.acting = asked
        try:
            # Without a journal nothing waits inside, so that all commits in here are ours.
            response = await self._api.handle(request, arrived=arrived)
        finally:
            record.acting = None
        if request.method != "GET":
            record.asked.append(asked)
        record.note(asked, response.status)
        return response

    # --- Faults of requests -----------------------------------------------------------------------

    async def _strike(
        self, fault: Happening, request: Request, floor: Mapping[str, int], sent_at: float
    ) -> Response:
        serve = self._serve
        match fault.what:
            case "crash-before":
                self._crash(fault)
            case "crash-after":
                await serve(request, floor=floor, sent_at=sent_at)
                self._crash(fault)
            case "crash-answered":
                response = await serve(request, floor=floor, sent_at=sent_at)
                self._crash_soon(fault)
                return response
            case "refuse":
                await self.clock.sleep(min(fault.seconds, request.timeout))
                time, now = self.clock.monotonic(), self.clock.now()
                asked = Asked(self.name, request, time, now, sent_at, 0, floor)
                self._record.note(asked, int(fault.args["status"]))
                return refused(int(fault.args["status"]), str(fault.args.get("why", "")))
            case "lose-request":
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: nobody answers", sent=True)
            case "lose-answer":
                await serve(request, floor=floor, sent_at=sent_at)
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: the answer was lost", sent=True)
            case "slow-answer":
                return await self._slowly(fault, request, floor, sent_at)
        raise AssertionError(f"{fault.what} is no fault of a request")

    async def _slowly(
        self, fault: Happening, request: Request, floor: Mapping[str, int], sent_at: float
    ) -> Response:
        """The server takes its time; the client may not wait for it."""
        arrived = self.clock.monotonic()
        if fault.seconds >= request.timeout:
            await self.clock.sleep(request.timeout)
            raise TransportError("simulated: timed out", sent=True)
        await self.clock.sleep(fault.seconds)
        return await self._serve(request, floor=floor, sent_at=sent_at, arrived=arrived)

    def _crash(self, fault: Happening) -> None:
        assert self._process is not None
        self._process.crash(fault.describe())
        raise Killed

    def _crash_soon(self, fault: Happening) -> None:
        """Die once whoever asked has taken the answer."""
        assert self._process is not None
        asyncio.get_running_loop().call_soon(self._process.crash, fault.describe())

    def _check(self) -> None:
        if self.dead:
            raise Killed

    def _reachable(self, sky: Sky, request: Request) -> None:
        self._check()
        if sky.is_cut_off(self.name):
            raise TransportError("simulated: the server cannot be reached", sent=True)

    # --- What the process has been told ----------------------------------------------------------

    def tell(self, watch: tuple[str, str], body: bytes) -> None:
        """A line of a watch was delivered."""
        found = _VERSION.search(body)
        if found is not None:
            told = self._told.setdefault(watch, deque([(-1.0, 0)], maxlen=64))
            version = int(found[1])
            if version > told[-1][1]:
                told.append((self.clock.monotonic(), version))

    def _tell_list(self, request: Request, response: Response) -> None:
        if request.method == "GET" and response.ok and request.path.endswith(_WATCHED):
            self.tell(_watch_of(request), response.body[:400])

    def _floors(self) -> dict[str, int]:
        """The version up to which the process surely knew each kind when it last decided."""
        before = self.clock.monotonic() - _THINKING
        floors: dict[str, int] = {}
        for watch, kind in self._watched.items():
            told = self._told.get(watch, ())
            floors[kind] = next((v for time, v in reversed(told) if time <= before), 0)
        return floors

    # --- The end -------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process is dead: nothing passes any more."""
        self.dead = True
        self.cut("")

    def revive(self) -> None:
        """End the streams that have fallen silent, so that others are opened."""
        for stream in list(self._streams.values()):
            if stream.silent:
                stream.end(gone=False, half=False)

    def cut(self, kind: str, *, gone: bool = False, half: bool = False) -> int:
        """End the streams of a kind, or all; how many there were."""
        streams = [each for each in self._streams.values() if not kind or each.kind == kind]
        for stream in streams:
            stream.end(gone=gone, half=half)
        return len(streams)


class SimStream:
    """A watch that can stall, stutter, fall silent or break."""

    def __init__(self, watch: Watch, door: Door, sky: Sky, watched: tuple[str, str]) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self.kind = plural_of(watched[0])
        self._watched = watched
        self.forget: Callable[[], None] = lambda: None
        self._watch = watch
        self._door = door
        self._sky = sky
        self._lines: deque[bytes] = deque()
        self._past: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._last: bytes | None = None  # what is still said at the end
        self._ended = False
        self._silent: asyncio.Future[None] | None = None
        self._listed = False

    async def readline(self) -> bytes:
        """The next line."""
        while not self._over():
            if not self._lines:
                self._lines.extend(await self._watch.next())
                if self._over():
                    break
                if not self._lines:
                    return b""
            if not self._sky.calm or self._door.clock.frozen:
                await self._wait()
            if self._over():
                break
            found = self._lines.popleft()
            self._listed = self._listed or b"initial-events-end" in found
            if self._sky.drops(self.kind, found):
                continue
            self._repeat(found)
            self._past.append(found)
            self._door.tell(self._watched, found)
            return found
        return await self._finish()

    def _over(self) -> bool:
        return self._ended

    async def _finish(self) -> bytes:
        if self._door.dead:
            raise Killed
        last, self._last = self._last, None
        return last or b""

    async def _wait(self) -> None:
        """Hold the line back for as long as this kind is held."""
        await self._door.clock.thaw()
        await self._trail()
        if self._sky.is_silent(self._door.name, self.kind):
            self._silent = asyncio.get_running_loop().create_future()
            await self._silent
            return
        while True:
            until, coalesce = self._sky.held_until(self._door.name, self.kind)
            pause = until - self._door.clock.monotonic()
            if pause <= 0:
                return
            # In small steps: when the faults are over, so is this one.
            await self._door.clock.sleep(min(pause, _HOLDING))
            if coalesce:
                await self._coalesce()

    async def _trail(self) -> None:
        """Stay some events behind, once everything that was there has been listed."""
        while self._listed and not self._over():
            behind = self._sky.behind(self._door.name)
            if len(self._lines) > behind:
                return
            await self._door.clock.sleep(_TRAILING)
            await self._take()

    async def _take(self) -> None:
        """Take whatever the watch has to tell already."""
        more = asyncio.ensure_future(self._watch.next())
        await self._door.clock.sleep(0)
        if more.done():
            self._lines.extend(more.result())
        more.cancel()

    async def _coalesce(self) -> None:
        """Leave out the states in between: only the last of each object is told."""
        await self._take()
        last: dict[bytes, bytes] = {}
        for each in self._lines:
            name = _NAME.search(each)
            key = name[1] if name else each
            last.pop(key, None)
            last[key] = each
        if len(last) < len(self._lines):
            self._sky.count("coalesce", len(self._lines) - len(last))
            self._lines = deque(last.values())

    def _repeat(self, found: bytes) -> None:
        """Say something twice, or something from before once more."""
        if not self._sky.stutters(self.kind):
            return
        self._lines.appendleft(self._sky.pick([*self._past, found]))

    @property
    def silent(self) -> bool:
        """Whether nothing comes any more, and nobody says so."""
        return self._silent is not None and not self._silent.done()

    async def read(self) -> bytes:
        """Everything that is left."""
        return await self.readline()

    async def close(self) -> None:
        """Let go."""
        self._ended = True
        self.forget()
        self._watch.close()

    def end(self, *, gone: bool, half: bool) -> None:
        """Break, perhaps with a last word."""
        if gone:
            self._last = line("ERROR", status_body(410, "Expired", "too old resource version"))
        elif half:
            self._last = b'{"type":"MODIFIED","object":{"kind":"Pod","metad'
        self._ended = True
        self.forget()
        self._watch.close()
        if self._silent is not None and not self._silent.done():
            self._silent.set_result(None)


_NAME: Final = re.compile(rb'"metadata":\{"name":"([^"]+)"')
