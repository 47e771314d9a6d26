"""How one process reaches the server: where requests are lost, held, repeated and refused."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from everynode.api import keys
from everynode.cluster.local import LocalStream, WholeStream
from everynode.cluster.rest import Api
from everynode.cluster.watches import Watch
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, TransportError
from everynode.sim.clock import TURN, Killed, SimClock
from everynode.sim.plan import Happening
from everynode.sim.record import Asked, Record
from everynode.sim.refusals import refusal, refused
from everynode.sim.stream import SimStream
from everynode.sim.weather import Sky

_VERSION: Final = b'"resourceVersion":"'
_LEAST: Final = 0.0002  # seconds that a request or an answer is on its way
_MORE: Final = 0.0028  # and at most so many more
_TOLD: Final = 64  # deliveries that are remembered of each watch
# A decision is at most this much older than the request that carries it out.
_THINKING: Final = 0.05
# Counts may be older still: what lets nobody go on is counted with what else happens in a moment.
_COUNTING: Final = 0.25
_WATCHED: Final = ("nodes", "pods", "controllerrevisions", "daemonsets")
_NOTHING: Final[Mapping[str, int]] = {}


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


def _known(told: Sequence[tuple[float, int]], before: float) -> int:
    """The newest version that was delivered before a time."""
    for time, version in reversed(told):
        if time <= before:
            return version
    return 0


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
            await TURN
            self._check()
            return await self._serve(request)
        # Whoever reads changes nothing that would have to be justified.
        floors = self._floors(request) if request.method != "GET" else _NOTHING
        sent_at = self.clock.monotonic()
        await self.clock.pause(self._latency())  # it is on its way
        self._reachable(sky)
        fault = sky.fault_of_call(self.name, request)
        if fault is not None:
            return await self._strike(fault, request, floors, sent_at)
        response = await self._serve(sky.altered(request), floors=floors, sent_at=sent_at)
        await self.clock.sleep(self._latency())
        self._reachable(sky)
        self._tell_list(request, response)
        return response

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        self._check()
        if self._sky is None:
            await self.clock.pause(0)
            answer = await self._api.open(request)
            return LocalStream(answer) if isinstance(answer, Watch) else WholeStream(answer)
        await self.clock.sleep(self._latency())
        self._reachable(self._sky)
        code = self._sky.refused_watch(request)
        if code:
            return WholeStream(refusal(code))
        answer = await self._api.open(request)
        if not isinstance(answer, Watch):
            return WholeStream(answer)
        self._opened += 1
        watched = _watch_of(request)
        if watched[1] != keys.PULLER:  # which are no daemon pods
            self._watched[watched] = _kind_of(request.path)
        kind = plural_of(request.path)
        stream = SimStream(answer, self, self._sky, kind=kind, watched=watched)
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
        floors: Mapping[str, int] = _NOTHING,
        sent_at: float | None = None,
        arrived: float | None = None,
    ) -> Response:
        time = self.clock.monotonic()
        sent_at = time if sent_at is None else sent_at
        now, set_at = self.clock.now(), self.clock.set_at
        asked = Asked(self.name, request, time, now, sent_at, floors, set_at)
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
        self, fault: Happening, request: Request, floors: Mapping[str, int], sent_at: float
    ) -> Response:
        serve = self._serve
        match fault.what:
            case "crash-before":
                self._crash(fault)
            case "crash-after":
                await serve(request, floors=floors, sent_at=sent_at)
                self._crash(fault)
            case "crash-answered":
                response = await serve(request, floors=floors, sent_at=sent_at)
                self._crash_soon(fault)
                return response
            case "refuse":
                await self.clock.sleep(min(fault.seconds, request.timeout))
                time, now = self.clock.monotonic(), self.clock.now()
                asked = Asked(self.name, request, time, now, sent_at, floors)
                self._record.note(asked, int(fault.args["status"]))
                return refused(int(fault.args["status"]), str(fault.args.get("why", "")))
            case "lose-request":
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: nobody answers", sent=True)
            case "lose-answer":
                await serve(request, floors=floors, sent_at=sent_at)
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: the answer was lost", sent=True)
            case "slow-answer":
                return await self._slowly(fault, request, floors, sent_at)
        raise AssertionError(f"{fault.what} is no fault of a request")

    async def _slowly(
        self, fault: Happening, request: Request, floors: Mapping[str, int], sent_at: float
    ) -> Response:
        """The server takes its time; the client may not wait for it."""
        arrived = self.clock.monotonic()
        if fault.seconds >= request.timeout:
            await self.clock.sleep(request.timeout)
            raise TransportError("simulated: timed out", sent=True)
        await self.clock.sleep(fault.seconds)
        return await self._serve(request, floors=floors, sent_at=sent_at, arrived=arrived)

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

    def _reachable(self, sky: Sky) -> None:
        self._check()
        if not sky.calm and sky.is_cut_off(self.name):
            raise TransportError("simulated: the server cannot be reached", sent=True)

    def _latency(self) -> float:
        return _LEAST + _MORE * self._random.random()

    # --- What the process has been told ----------------------------------------------------------

    def tell(self, watch: tuple[str, str], body: bytes) -> None:
        """An event of a watch was delivered."""
        at = body.find(_VERSION) + len(_VERSION)
        digits = body[at : body.find(b'"', at)] if at >= len(_VERSION) else b""
        if not digits.isdigit():
            return
        version = int(digits)
        told = self._told.get(watch)
        if told is None:
            told = self._told[watch] = deque([(-1.0, 0)], maxlen=_TOLD)
        if version > told[-1][1]:
            told.append((self.clock.monotonic(), version))

    def _tell_list(self, request: Request, response: Response) -> None:
        if request.method == "GET" and response.ok and request.path.endswith(_WATCHED):
            self.tell(_watch_of(request), response.body[:400])

    def _floors(self, request: Request) -> dict[str, int]:
        """The version up to which the process surely knew each kind when it last decided."""
        before = self.clock.monotonic() - _THINKING
        told = self._told
        found = {kind: _known(told.get(watch, ()), before) for watch, kind in self._watched.items()}
        if request.path.endswith("/status") and plural_of(request.path) == "daemonsets":
            counted = before - _COUNTING
            for watch, kind in self._watched.items():
                if kind == "pods":
                    found[kind] = _known(told.get(watch, ()), counted)
        return found

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
