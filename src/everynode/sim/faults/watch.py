"""FaultyWatch: a watch that can stall, repeat events, leave some out, fall silent or break."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from everynode.apiserver.verbs.watch import Watch, encode_event
from everynode.kube.transport import Event
from everynode.kube.watch.watcher import split_event
from everynode.sim.engine.clock import Killed, SimClock
from everynode.sim.faults.active import ActiveFaults
from everynode.sim.faults.responses import status_body

_MAX_REPEATABLE: Final = 20  # events that can be repeated
_HOLD_INTERVAL: Final = 2.0  # seconds between two checks whether the watch is still held
_LAG_INTERVAL: Final = 0.2  # seconds between two checks of how far the watch lags
_HALF: Final = b'{"type":"MODIFIED","object":{"kind":"Pod","metad'
_NAME: Final = re.compile(rb'"metadata":\{"name":"([^"]+)"')


class WatchClient(Protocol):
    """The transport of the process that watches."""

    name: str
    clock: SimClock
    dead: bool

    def delivered(self, watch: tuple[str, str], body: bytes) -> None:
        """Record that an event of a watch was delivered."""
        ...


class FaultyWatch:
    """A watch with the faults that are in force."""

    def __init__(
        self,
        watch: Watch,
        transport: WatchClient,
        faults: ActiveFaults,
        *,
        kind: str,
        watched: tuple[str, str],
        on_end: Callable[[], object],
    ) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self.kind = kind
        self._watched = watched
        self._on_end = on_end
        self._watch = watch
        self._transport = transport
        self._faults = faults
        self._events: deque[Event] = deque()
        self._past: deque[Event] = deque(maxlen=_MAX_REPEATABLE)
        self._last = b""  # the line sent before the stream ends
        self._ended = False
        self._silent: asyncio.Future[None] | None = None
        self._listed = False

    async def readline(self) -> bytes:
        """The next line."""
        event = await self.event()
        return b"" if event is None else encode_event(*event)

    async def event(self) -> Event | None:
        """The next event."""
        events = self._events
        while not self._ended:
            if not events:
                events.extend(await self._watch.events())
                if not events or self._has_ended():
                    break
            # Usually no fault is in force: one test instead of four.
            troubled = not self._faults.none_active
            if troubled or self._transport.clock.frozen:
                await self._wait()
                if self._has_ended():
                    break
            event = events.popleft()
            self._listed = self._listed or b"initial-events-end" in event[1]
            if troubled:
                if event[0] == "BOOKMARK" and self._faults.drops_bookmark(
                    self.kind, encode_event(*event)
                ):
                    continue
                self._repeat(event)
            self._past.append(event)
            self._transport.delivered(self._watched, event[1])
            return event
        return self._finish()

    def _has_ended(self) -> bool:
        return self._ended

    def _finish(self) -> Event | None:
        if self._transport.dead:
            raise Killed
        last, self._last = self._last, b""
        return split_event(last) if last else None

    async def _wait(self) -> None:
        """Wait while a fault holds back the events of this kind."""
        await self._transport.clock.thaw()
        await self._stay_behind()
        if self._faults.is_silent(self._transport.name, self.kind):
            self._silent = asyncio.get_running_loop().create_future()
            await self._silent
            return
        while True:
            until, coalesce = self._faults.held_until(self._transport.name, self.kind)
            pause = until - self._transport.clock.monotonic()
            if pause <= 0:
                return
            # In small steps, so that the wait ends soon after all faults are ended.
            await self._transport.clock.sleep(min(pause, _HOLD_INTERVAL))
            if coalesce:
                await self._coalesce()

    async def _stay_behind(self) -> None:
        """Stay some events behind, after the initial list."""
        while self._listed and not self._has_ended():
            behind = self._faults.events_behind(self._transport.name)
            if len(self._events) > behind:
                return
            await self._transport.clock.sleep(_LAG_INTERVAL)
            await self._take_pending()

    async def _take_pending(self) -> None:
        """Fetch the events that are already available."""
        more = asyncio.ensure_future(self._watch.events())
        await self._transport.clock.sleep(0)
        if more.done():
            self._events.extend(more.result())
        more.cancel()

    async def _coalesce(self) -> None:
        """Drop intermediate states: keep the last event of each object."""
        await self._take_pending()
        last: dict[bytes, Event] = {}
        for each in self._events:
            name = _NAME.search(each[1])
            key = name[1] if name else each[1]
            last.pop(key, None)
            last[key] = each
        if len(last) < len(self._events):
            self._faults.count("coalesce", len(self._events) - len(last))
            self._events.clear()
            self._events.extend(last.values())

    def _repeat(self, event: Event) -> None:
        """Deliver this event twice, or an earlier one once more."""
        if not self._faults.repeats_event(self.kind):
            return
        self._events.appendleft(self._faults.pick([*self._past, event]))

    @property
    def silent(self) -> bool:
        """Whether the watch gets no more events and was not closed either."""
        return self._silent is not None and not self._silent.done()

    async def read(self) -> bytes:
        """The rest of the stream."""
        return await self.readline()

    async def close(self) -> None:
        """Close the watch."""
        self._ended = True
        self._on_end()
        self._watch.close()

    def end(self, *, gone: bool, half: bool) -> None:
        """End the watch: with 410 Gone, in the middle of an object, or silently."""
        if gone:
            self._last = encode_event(
                "ERROR", status_body(410, "Expired", "too old resource version")
            )
        elif half:
            self._last = _HALF
        self._ended = True
        self._on_end()
        self._watch.close()
        if self._silent is not None and not self._silent.done():
            self._silent.set_result(None)
