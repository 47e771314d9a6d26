"""A watch as a simulated process gets it: it can stall, stutter, fall silent or break."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from everynode.cluster.watches import Watch, line
from everynode.kube.transport import Event
from everynode.kube.watch import split_event
from everynode.sim.clock import Killed, SimClock
from everynode.sim.refusals import status_body
from everynode.sim.weather import Sky

_REMEMBERED: Final = 20  # events that can come again
_HOLDING: Final = 2.0  # seconds between two looks whether a stream is still held
_TRAILING: Final = 0.2  # seconds between two looks at how far behind a stream is
_HALF: Final = b'{"type":"MODIFIED","object":{"kind":"Pod","metad'
_NAME: Final = re.compile(rb'"metadata":\{"name":"([^"]+)"')


class Listener(Protocol):
    """The door through which a stream reaches its process."""

    name: str
    clock: SimClock
    dead: bool

    def tell(self, watch: tuple[str, str], body: bytes) -> None:
        """An event of a watch was delivered."""
        ...


class SimStream:
    """A watch that can stall, stutter, fall silent or break."""

    def __init__(
        self, watch: Watch, door: Listener, sky: Sky, *, kind: str, watched: tuple[str, str]
    ) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self.kind = kind
        self._watched = watched
        self.forget: Callable[[], None] = lambda: None
        self._watch = watch
        self._door = door
        self._sky = sky
        self._events: deque[Event] = deque()
        self._past: deque[Event] = deque(maxlen=_REMEMBERED)
        self._last = b""  # what is still said at the end
        self._ended = False
        self._silent: asyncio.Future[None] | None = None
        self._listed = False

    async def readline(self) -> bytes:
        """The next line."""
        event = await self.event()
        return b"" if event is None else line(*event)

    async def event(self) -> Event | None:
        """The next event."""
        events = self._events
        while not self._ended:
            if not events:
                events.extend(await self._watch.events())
                if not events or self._over():
                    break
            # Mostly nothing is wrong with any stream, and nobody has to be asked what is.
            troubled = not self._sky.calm
            if troubled or self._door.clock.frozen:
                await self._wait()
                if self._over():
                    break
            event = events.popleft()
            self._listed = self._listed or b"initial-events-end" in event[1]
            if troubled:
                if event[0] == "BOOKMARK" and self._sky.drops(self.kind, line(*event)):
                    continue
                self._repeat(event)
            self._past.append(event)
            self._door.tell(self._watched, event[1])
            return event
        return self._finish()

    def _over(self) -> bool:
        return self._ended

    def _finish(self) -> Event | None:
        if self._door.dead:
            raise Killed
        last, self._last = self._last, b""
        return split_event(last) if last else None

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
            if len(self._events) > behind:
                return
            await self._door.clock.sleep(_TRAILING)
            await self._take()

    async def _take(self) -> None:
        """Take whatever the watch has to tell already."""
        more = asyncio.ensure_future(self._watch.events())
        await self._door.clock.sleep(0)
        if more.done():
            self._events.extend(more.result())
        more.cancel()

    async def _coalesce(self) -> None:
        """Leave out the states in between: only the last of each object is told."""
        await self._take()
        last: dict[bytes, Event] = {}
        for each in self._events:
            name = _NAME.search(each[1])
            key = name[1] if name else each[1]
            last.pop(key, None)
            last[key] = each
        if len(last) < len(self._events):
            self._sky.count("coalesce", len(self._events) - len(last))
            self._events.clear()
            self._events.extend(last.values())

    def _repeat(self, event: Event) -> None:
        """Say something twice, or something from before once more."""
        if not self._sky.stutters(self.kind):
            return
        self._events.appendleft(self._sky.pick([*self._past, event]))

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
            self._last = _HALF
        self._ended = True
        self.forget()
        self._watch.close()
        if self._silent is not None and not self._silent.done():
            self._silent.set_result(None)
