"""FaultyTransport: a process's transport to the API server that loses and delays requests."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from everynode.api import keys
from everynode.apiserver.transport.local import CompleteResponse, LocalStream
from everynode.apiserver.verbs.dispatch import Api
from everynode.apiserver.verbs.watch import Watch
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, TransportError
from everynode.sim.engine.clock import EPOCH, NEXT_TURN, Killed, SimClock
from everynode.sim.faults.active import ActiveFaults
from everynode.sim.faults.responses import admission_error, error_response
from everynode.sim.faults.watch import FaultyWatch
from everynode.sim.history.record import RecordedRequest, WorldRecord
from everynode.sim.plans.plan import Action

_VERSION: Final = b'"resourceVersion":"'
_MIN_LATENCY: Final = 0.0002  # seconds of latency at least, each way
_RANDOM_LATENCY: Final = 0.0028  # seconds of random latency on top
_MAX_DELIVERIES: Final = 64  # deliveries remembered per watch
# A decision is at most this many seconds older than its request.
_MAX_DECISION_SECONDS: Final = 0.05
# Counts in a status may be older still: changes that unblock no node are reconciled later.
_MAX_COUNT_SECONDS: Final = 0.25
_WATCHED: Final = ("nodes", "pods", "controllerrevisions", "daemonsets")
_NO_VERSIONS: Final[Mapping[str, int]] = {}


def resource_of_path(path: str) -> str:
    """The resource name in a request path."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return parts[0] if parts else ""


def _kind_of(path: str) -> str:
    """The kind in a request path, by the store's name for it."""
    parts = path.strip("/").split("/")
    return resource_of_path(path) if parts[0] == "api" else f"{resource_of_path(path)}.{parts[1]}"


def _watch_of(request: Request) -> tuple[str, str]:
    """The path and label selector of a watch or list."""
    return request.path, next((value for key, value in request.query if key == "labelSelector"), "")


def _newest_delivered(delivered_versions: Sequence[tuple[float, int]], before: float) -> int:
    """The newest version that was delivered before a time."""
    for time, version in reversed(delivered_versions):
        if time <= before:
            return version
    return 0


class Crashable(Protocol):
    """The process that uses a transport."""

    def crash(self, why: str) -> None:
        """Kill the process at once."""
        ...


class FaultyTransport:
    """The transport of one process. Without faults every request is served at once."""

    def __init__(
        self,
        api: Api,
        record: WorldRecord,
        *,
        name: str,
        clock: SimClock,
        seed: object = 0,
        faults: ActiveFaults | None = None,
        process: Crashable | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.dead = False
        self._api = api
        self._record = record
        self._random = random.Random(f"{seed}/{name}/door")
        self._faults = faults
        self._process = process
        self._streams: dict[int, FaultyWatch] = {}
        self._opened = 0
        # By watch: the times and versions of deliveries to the process.
        self._delivered: dict[tuple[str, str], deque[tuple[float, int]]] = {}
        self._watched: dict[tuple[str, str], str] = {}  # the kind of each watch

    # --- Transport -----------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Send a request and return its response, with the fault that applies to it."""
        self._check_alive()
        faults = self._faults
        if faults is None:
            await NEXT_TURN
            self._check_alive()
            return await self._serve(request)
        # Reads change nothing, so no check needs to know what their sender knew.
        known_versions = self._known_versions(request) if request.method != "GET" else _NO_VERSIONS
        sent_at = self.clock.monotonic()
        await self.clock.pause(self._latency())  # the request is in flight
        self._check_reachable(faults)
        fault = faults.fault_of_request(self.name, request)
        if fault is not None:
            return await self._apply_fault(fault, request, known_versions, sent_at)
        response = await self._serve(
            faults.after_admission(request), known_versions=known_versions, sent_at=sent_at
        )
        await self.clock.sleep(self._latency())
        self._check_reachable(faults)
        self._delivered_list(request, response)
        return response

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        self._check_alive()
        if self._faults is None:
            await self.clock.pause(0)
            answer = await self._api.open(request)
            return LocalStream(answer) if isinstance(answer, Watch) else CompleteResponse(answer)
        await self.clock.sleep(self._latency())
        self._check_reachable(self._faults)
        code = self._faults.refused_watch(request)
        if code:
            return CompleteResponse(error_response(code))
        answer = await self._api.open(request)
        if not isinstance(answer, Watch):
            return CompleteResponse(answer)
        self._opened += 1
        watched = _watch_of(request)
        if watched[1] in ("", keys.REVISION_HASH):  # else pull pods, or orphans of one DaemonSet
            self._watched[watched] = _kind_of(request.path)
        kind = resource_of_path(request.path)
        stream = FaultyWatch(
            answer,
            self,
            self._faults,
            kind=kind,
            watched=watched,
            on_end=partial(self._streams.pop, self._opened, None),
        )
        self._streams[self._opened] = stream
        return stream

    async def close(self) -> None:
        """Nothing to release."""

    # --- The server's side -----------------------------------------------------------------------

    async def _serve(
        self,
        request: Request,
        *,
        known_versions: Mapping[str, int] = _NO_VERSIONS,
        sent_at: float | None = None,
        arrived: float | None = None,
    ) -> Response:
        time = self.clock.monotonic()
        sent_at = time if sent_at is None else sent_at
        now, set_at = self.clock.now(), self.clock.set_at
        record = self._record
        max_clock_lead = now - EPOCH - time
        if max_clock_lead > record.max_clock_lead + 0.001:  # less is a rounding error
            record.max_clock_lead = max_clock_lead
        cause = RecordedRequest(
            self.name, request, time, now, sent_at, known_versions, set_at, record.max_clock_lead
        )
        record.current_request = cause
        try:
            # Without a journal `handle` never yields, so all commits made in it are this request's.
            response = await self._api.handle(request, arrived=arrived)
        finally:
            record.current_request = None
        if request.method != "GET":
            record.requests.append(cause)
        record.note(cause, response.status)
        return response

    # --- Faults of requests -----------------------------------------------------------------------

    async def _apply_fault(
        self, fault: Action, request: Request, known_versions: Mapping[str, int], sent_at: float
    ) -> Response:
        serve = self._serve
        match fault.name:
            case "crash-before":
                self._crash(fault)
            case "crash-after":
                await serve(request, known_versions=known_versions, sent_at=sent_at)
                self._crash(fault)
            case "crash-answered":
                response = await serve(request, known_versions=known_versions, sent_at=sent_at)
                self._crash_soon(fault)
                return response
            case "refuse":
                await self.clock.sleep(min(fault.seconds, request.timeout))
                time, now = self.clock.monotonic(), self.clock.now()
                why = str(fault.args.get("why", ""))
                cause = RecordedRequest(
                    self.name, request, time, now, sent_at, known_versions, refused_by=why
                )
                self._record.note(cause, int(fault.args["status"]))
                return admission_error(int(fault.args["status"]), why)
            case "lose-request":
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: no answer", sent=True)
            case "lose-answer":
                await serve(request, known_versions=known_versions, sent_at=sent_at)
                await self.clock.sleep(min(request.timeout, 1.0))
                raise TransportError("simulated: the answer was lost", sent=True)
            case "slow-answer":
                return await self._serve_slowly(fault, request, known_versions, sent_at)
        raise AssertionError(f"{fault.name} is no fault of a request")

    async def _serve_slowly(
        self, fault: Action, request: Request, known_versions: Mapping[str, int], sent_at: float
    ) -> Response:
        """Serve a request late, or let its client time out."""
        arrived = self.clock.monotonic()
        if fault.seconds >= request.timeout:
            await self.clock.sleep(request.timeout)
            raise TransportError("simulated: timed out", sent=True)
        await self.clock.sleep(fault.seconds)
        return await self._serve(
            request, known_versions=known_versions, sent_at=sent_at, arrived=arrived
        )

    def _crash(self, fault: Action) -> None:
        assert self._process is not None
        self._process.crash(fault.describe())
        raise Killed

    def _crash_soon(self, fault: Action) -> None:
        """Crash the process just after the caller has received the response."""
        assert self._process is not None
        asyncio.get_running_loop().call_soon(self._process.crash, fault.describe())

    def _check_alive(self) -> None:
        if self.dead:
            raise Killed

    def _check_reachable(self, faults: ActiveFaults) -> None:
        self._check_alive()
        if not faults.none_active and faults.is_cut_off(self.name):
            raise TransportError("simulated: the server cannot be reached", sent=True)

    def _latency(self) -> float:
        return _MIN_LATENCY + _RANDOM_LATENCY * self._random.random()

    # --- What the process knows ------------------------------------------------------------------

    def delivered(self, watch: tuple[str, str], body: bytes) -> None:
        """Record that an event of a watch was delivered."""
        at = body.find(_VERSION) + len(_VERSION)
        digits = body[at : body.find(b'"', at)] if at >= len(_VERSION) else b""
        if not digits.isdigit():
            return
        version = int(digits)
        delivered_versions = self._delivered.get(watch)
        if delivered_versions is None:
            delivered_versions = self._delivered[watch] = deque([(-1.0, 0)], maxlen=_MAX_DELIVERIES)
        if version > delivered_versions[-1][1]:
            delivered_versions.append((self.clock.monotonic(), version))

    def _delivered_list(self, request: Request, response: Response) -> None:
        whole = not any(key == "fieldSelector" for key, _ in request.query)
        if whole and request.method == "GET" and response.ok and request.path.endswith(_WATCHED):
            self.delivered(_watch_of(request), response.body[:400])

    def _known_versions(self, request: Request) -> dict[str, int]:
        """By kind, the version that the process certainly knew when it decided."""
        before = self.clock.monotonic() - _MAX_DECISION_SECONDS
        delivered_versions = self._delivered
        found = {
            kind: _newest_delivered(delivered_versions.get(watch, ()), before)
            for watch, kind in self._watched.items()
        }
        if request.path.endswith("/status") and resource_of_path(request.path) == "daemonsets":
            counted = before - _MAX_COUNT_SECONDS
            for watch, kind in self._watched.items():
                if kind == "pods":
                    found[kind] = _newest_delivered(delivered_versions.get(watch, ()), counted)
        return found

    # --- The end -------------------------------------------------------------------------------

    def kill(self) -> None:
        """Stop all traffic: the process was killed."""
        self.dead = True
        self.end_watches("")

    def end_silent_watches(self) -> None:
        """End the watches that have fallen silent, so that the process opens new ones."""
        for stream in list(self._streams.values()):
            if stream.silent:
                stream.end(gone=False, half=False)

    def end_watches(self, kind: str, *, gone: bool = False, half: bool = False) -> int:
        """End the watches of a kind, or all; return how many there were."""
        streams = [each for each in self._streams.values() if not kind or each.kind == kind]
        for stream in streams:
            stream.end(gone=gone, half=half)
        return len(streams)
