"""Event loop on virtual time: it never waits, and the same seed gives the same order of events.

Ready callbacks run in the order in which they became ready, as asyncio guarantees. Timers that are
due at the same instant fire in an order drawn from the seed, because real timers have no fixed
order either. There is no I/O and there are no threads.
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
_MAX_NAMED: Final = 3
_LAST_TURNS: Final = 1000  # turns for tasks to clean up when the loop is closed


class Deadlock(RuntimeError):
    """No callback is ready and no timer is set: the tasks that wait will never wake."""


class Livelock(RuntimeError):
    """A million callbacks ran without virtual time passing: something spins."""


class _Call(msgspec.Struct, eq=False):
    """A scheduled callback: does what asyncio's Handle does, and is cheaper to create."""

    context: contextvars.Context
    callback: Callable[..., object]
    args: tuple[Any, ...]
    at: float = 0.0
    dropped: bool = False

    def cancel(self) -> None:
        """Cancel the callback."""
        self.dropped = True

    def cancelled(self) -> bool:
        """Whether the callback was cancelled."""
        return self.dropped

    def when(self) -> float:
        """The virtual time at which the timer is due."""
        return self.at

    def name(self) -> str:
        """The name of the callback; for a step of a task, the name of its coroutine."""
        task = getattr(self.callback, "__self__", None)
        requests_made = task.get_coro() if isinstance(task, asyncio.Task) else self.callback
        return str(getattr(requests_made, "__qualname__", type(requests_made).__name__))


class SimLoop(asyncio.BaseEventLoop):
    """Runs tasks in virtual time; jumps to the next timer whenever nothing is ready."""

    # More callbacks than this at one instant are a livelock; 5,000 nodes need fewer.
    MAX_CALLBACKS_AT_ONE_TIME = 1_000_000
    # More timers than this in a row at one instant are a livelock.
    MAX_STANDSTILLS = 1_000_000

    def __init__(self, seed: object = 0) -> None:
        self._running = False  # the base class reads it in its __init__
        super().__init__()
        self._random = random.Random(f"{seed}/loop")
        self._now = 0.0
        self._standstills = 0  # consecutive jumps that did not advance the time
        self._ready: deque[_Call] = deque()
        self._timers: list[tuple[float, float, int, _Call]] = []
        self._count = 0
        # Kept here too: asyncio's own set also has the tasks of earlier worlds.
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._closed = False
        self._stopping = False
        self.errors: list[dict[str, Any]] = []  # exceptions that no task handled

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
        """Call a function at this instant, after all callbacks that are already ready."""
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
        """Call a function after a delay in virtual seconds."""
        # A shorter delay would be lost in rounding, and its caller would spin.
        when = self._now + max(delay, _RESOLUTION) if delay > 0 else self._now
        return self.call_at(when, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a virtual time."""
        call = _Call(copy_context() if context is None else context, callback, args, when)
        self._count += 1
        heapq.heappush(self._timers, (when, self._random.random(), self._count, call))
        return call  # type: ignore[return-value]  # it does what a handle does

    # --- Running -----------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done; raises Deadlock if it never can be."""
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
        """Run all ready callbacks, including those that become ready meanwhile."""
        ready = self._ready
        for _ in repeat(None, self.MAX_CALLBACKS_AT_ONE_TIME):
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
        """Advance the time to the next timer."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][3].dropped:
            heapq.heappop(timers)
        if not timers:
            raise Deadlock("every task waits and no timer is set")
        if timers[0][0] > self._now:
            self._now, self._standstills = timers[0][0], 0
        else:
            self._standstills += 1
            if self._standstills > self.MAX_STANDSTILLS:
                raise self._endless(each[3] for each in timers)
        while timers and timers[0][0] <= self._now:
            call = heapq.heappop(timers)[3]
            if not call.dropped:
                ready.append(call)

    def _endless(self, calls: Iterable[_Call]) -> Livelock:
        names = "; ".join(each.name() for each in islice(calls, _MAX_NAMED))
        return Livelock(f"something spins at {self._now:.3f} s: {names or 'what ran last'}")

    def stop(self) -> None:
        """End the current run after this turn."""
        self._stopping = True

    def close(self) -> None:
        """Cancel all remaining tasks and drop all callbacks."""
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
        """Whether the loop is running."""
        return self._running

    def is_closed(self) -> bool:
        """Whether the loop was closed."""
        return self._closed

    # --- The rest of asyncio's loop interface ------------------------------------------------

    def create_task(
        self, coro: Any, *, name: Any = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        """Start a task."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        return task

    # Called for every task and future; `bool()` is the fastest way to return False.
    get_debug = staticmethod(bool)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the error in `errors`."""
        if not self._closed:
            self.errors.append(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the error in `errors`."""
        self.default_exception_handler(context)


def run(main: Coroutine[Any, Any, T], *, seed: object = 0, loop: SimLoop | None = None) -> T:
    """Run a coroutine to completion on virtual time."""
    loop = loop or SimLoop(seed)
    try:
        result: T = loop.run_until_complete(main)
        return result
    finally:
        loop.close()
