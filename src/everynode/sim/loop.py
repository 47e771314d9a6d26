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
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from itertools import islice, repeat
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

import msgspec

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_RESOLUTION: Final = 1e-6  # seconds; no timer waits for less
_MOST_NAMED: Final = 3
_LAST_TURNS: Final = 1000  # given to tasks that have to clean up when everything is over


class Stuck(RuntimeError):
    """Nothing is ready and nothing will ever be: whoever waits, waits for ever."""


class Endless(RuntimeError):
    """So many callbacks ran without time passing that they will never end."""


class _Call(msgspec.Struct, eq=False):
    """A callback that waits for its turn or its time: what a handle can do, and cheaper to make."""

    context: contextvars.Context
    callback: Callable[..., object]
    args: tuple[Any, ...]
    at: float = 0.0
    dropped: bool = False

    def cancel(self) -> None:
        """Have it not called."""
        self.dropped = True

    def cancelled(self) -> bool:
        """Whether it will not be called."""
        return self.dropped

    def when(self) -> float:
        """At what virtual time a timer is due."""
        return self.at

    def name(self) -> str:
        """What is called: a task by what it does, and not by the way it takes its steps."""
        task = getattr(self.callback, "__self__", None)
        called = task.get_coro() if isinstance(task, asyncio.Task) else self.callback
        return str(getattr(called, "__qualname__", type(called).__name__))


class SimLoop(asyncio.BaseEventLoop):
    """Runs tasks in virtual time; jumps to the next timer whenever nothing is ready."""

    # Callbacks at one instant beyond which something spins; a fleet of 5,000 needs fewer.
    MOST_AT_ONCE = 1_000_000
    # Timers rung one after the other at one instant beyond which they ring for ever.
    MOST_STANDSTILLS = 1_000_000

    def __init__(self, seed: object = 0) -> None:
        self._running = False  # the base asks for it while it is made
        super().__init__()
        self._random = random.Random(f"{seed}/loop")
        self._now = 0.0
        self._standstills = 0  # jumps to the instant that it was already
        self._ready: deque[_Call] = deque()
        self._timers: list[tuple[float, float, int, _Call]] = []
        self._count = 0
        # Kept here too: asyncio mixes them with those of all worlds that were played before.
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
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
        call = _Call(copy_context() if context is None else context, callback, args)
        self._ready.append(call)
        return call  # type: ignore[return-value]  # it does what a handle does

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
        return self.call_at(when, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a function called at a virtual time."""
        call = _Call(copy_context() if context is None else context, callback, args, when)
        self._count += 1
        heapq.heappush(self._timers, (when, self._random.random(), self._count, call))
        return call  # type: ignore[return-value]  # it does what a handle does

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
        ready = self._ready
        for _ in repeat(None, self.MOST_AT_ONCE):
            if not ready or self._stopping:
                return
            call = ready.popleft()
            if call.dropped:
                continue
            try:
                call.context.run(call.callback, *call.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                what = f"a callback failed: {call!r}"
                self.call_exception_handler({"message": what, "exception": error})
        raise self._endless(ready)

    def _jump(self) -> None:
        """Go to the next instant at which something happens."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][3].dropped:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("everybody waits and nobody will come")
        if timers[0][0] > self._now:
            self._now, self._standstills = timers[0][0], 0
        else:
            self._standstills += 1
            if self._standstills > self.MOST_STANDSTILLS:
                raise self._endless(each[3] for each in timers)
        while timers and timers[0][0] <= self._now:
            call = heapq.heappop(timers)[3]
            if not call.dropped:
                ready.append(call)

    def _endless(self, calls: Iterable[_Call]) -> Endless:
        names = "; ".join(each.name() for each in islice(calls, _MOST_NAMED))
        return Endless(f"something spins at {self._now:.3f} s: {names or 'what ran last'}")

    def stop(self) -> None:
        """End the present run after this turn."""
        self._stopping = True

    def close(self) -> None:
        """End every task that is left, and let go of everything."""
        self._closed = True
        asyncio.events._set_running_loop(self)
        try:
            for _ in range(_LAST_TURNS):
                left = [task for task in self._tasks if not task.done()]
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

    def create_task(
        self, coro: Any, *, name: Any = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        """Begin something that goes on beside everything else."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        return task

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
