"""An event loop on virtual time: nobody waits, and the same seed gives the same order of events.

What is ready runs in the order in which it became so, as asyncio promises. Timers that are due at
the same instant fire in an order drawn from the seed, as they would on a real machine, where no
two clocks agree. There is no I/O and there are no threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_RESOLUTION: Final = 1e-6  # seconds; no timer waits for less
_LAST_TURNS: Final = 1000  # given to tasks that have to clean up when everything is over


class Stuck(RuntimeError):
    """Nothing is ready and nothing will ever be: whoever waits, waits for ever."""


class Endless(RuntimeError):
    """So many callbacks ran without time passing that they will never end."""


class _Call(asyncio.Handle):
    """A callback that waits for its turn; made without asking the loop what a real one asks."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: Any, context: Any) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    """A callback that waits for its time."""

    __slots__ = ()

    def __init__(self, when: float, callback: Any, args: Any, loop: Any, context: Any) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = True


class SimLoop(asyncio.BaseEventLoop):
    """Runs tasks in virtual time; jumps to the next timer whenever nothing is ready."""

    # Callbacks at one instant beyond which something spins; a fleet of 5,000 needs fewer.
    MOST_AT_ONCE = 5_000_000

    def __init__(self, seed: object = 0) -> None:
        self._running = False  # the base asks for it while it is made
        super().__init__()
        self._random = random.Random(f"{seed}/loop")
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._closed = False
        self._stopping = False
        self.errors: list[dict[str, Any]] = []  # what nobody else took

    # --- Time --------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Have a function called in this instant, after everything that is ready already."""
        handle = _Call(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a function called after so many virtual seconds."""
        # Too short a delay would vanish in the rounding, and whoever waits would spin for ever.
        when = self._now + max(delay, _RESOLUTION) if delay > 0 else self._now
        handle = _Timer(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._random.random(), self._count, handle))
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a function called at a virtual time."""
        handle = _Timer(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._random.random(), self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when their time comes."""

    # --- Running -----------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done; raises Stuck where it never can be."""
        task: asyncio.Future[Any] = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        return task.result()

    def run_forever(self) -> None:
        """Run until stopped."""
        asyncio.events._set_running_loop(self)
        self._running = True
        try:
            while not self._stopping:
                if not self._ready:
                    self._jump()
                self._turn()
        finally:
            self._stopping = self._running = False
            asyncio.events._set_running_loop(None)

    def _turn(self) -> None:
        """Run everything that is ready, and what becomes so meanwhile."""
        ready, count = self._ready, 0
        while ready and not self._stopping:
            handle: Any = ready.popleft()
            if handle._cancelled:
                continue
            count += 1
            if count > self.MOST_AT_ONCE:
                raise Endless(f"something spins at {self._now:.3f} s: {list(ready)[:3]}")
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                what = f"a callback failed: {handle!r}"
                self.call_exception_handler({"message": what, "exception": error})

    def _jump(self) -> None:
        """Go to the next instant at which something happens."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][3]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("everybody waits and nobody will come")
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[3]
            if not handle._cancelled:
                ready.append(handle)

    def stop(self) -> None:
        """End the present run after this turn."""
        self._stopping = True

    def close(self) -> None:
        """End every task that is left, and let go of everything."""
        self._closed = True
        asyncio.events._set_running_loop(self)
        try:
            for _ in range(_LAST_TURNS):
                left = [task for task in asyncio.all_tasks(self) if not task.done()]
                if not left:
                    break
                for task in left:
                    task.cancel()
                self._stopping = False
                self._turn()
        finally:
            asyncio.events._set_running_loop(None)
        self._ready.clear()
        self._timers.clear()

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._running

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    # --- What asyncio asks of a loop ---------------------------------------------------------

    # Asked for every task and future there is; this is the fastest way to say no.
    get_debug = staticmethod(bool)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for whoever looks."""
        if not self._closed:
            self.errors.append(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for whoever looks."""
        self.default_exception_handler(context)


def run(main: Coroutine[Any, Any, T], *, seed: object = 0, loop: SimLoop | None = None) -> T:
    """Run something in virtual time, from beginning to end."""
    loop = loop or SimLoop(seed)
    try:
        result: T = loop.run_until_complete(main)
        return result
    finally:
        loop.close()
