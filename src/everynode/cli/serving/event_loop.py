"""Event loop of long-running commands: uvloop if installed, stopped by signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run(program: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; SIGTERM, SIGHUP and Ctrl-C cancel it, so that it can clean up.

    A terminal window that is closed sends SIGHUP; `nohup` ignores it, and then it stays ignored.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(_run_until_signal(program))
        except* asyncio.CancelledError:
            pass


async def _run_until_signal(program: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(program)
    names = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        names.append(signal.SIGHUP)
    for name in names:
        loop.add_signal_handler(name, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
