"""Exec plugin process: runs a credential plugin with bounds on its time and its output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from everynode.clock import Clock
from everynode.kube.watch.interrupt import TimeLimit

PLUGIN_SECONDS: Final = 60.0  # seconds
MAX_OUTPUT_BYTES: Final = 1024 * 1024  # an ExecCredential with a long chain has some thousand bytes
# A child process that outlives the plugin may keep its pipes open; its output has arrived by then.
_PIPE_GRACE: Final = 1.0


class PluginFailure(Exception):
    """The plugin failed to give credentials; the message is the reason."""


@dataclass(frozen=True, slots=True)
class PluginOutput:
    """The output of a plugin, and its exit code."""

    out: bytes
    err: bytes
    code: int


async def run_plugin(
    clock: Clock, command: Sequence[str], environment: Mapping[str, str], *, interactive: bool
) -> PluginOutput:
    """Run a plugin until it exits; raises PluginFailure, and OSError where it cannot be started.

    An interactive plugin keeps the terminal, its stderr and our process group. Any other gets a
    session of its own, so that it can be killed together with the processes that it started.
    """
    out, err = _Pipe(), _Pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(environment),
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=out.write_end,
            stderr=None if interactive else err.write_end,
            start_new_session=not interactive,
        )
    except ValueError as error:  # for example a zero byte in an argument
        out.close()
        err.close()
        raise PluginFailure(f"cannot be started: {error}") from None
    except BaseException:
        out.close()
        err.close()
        raise
    try:
        await out.start_reading()
        await err.start_reading()
        return await _wait_for_exit(clock, process, out, err)
    finally:
        if process.returncode is None:
            _kill(process, group=not interactive)
            await process.wait()
        out.close()
        err.close()


async def _wait_for_exit(
    clock: Clock, process: asyncio.subprocess.Process, out: _Pipe, err: _Pipe
) -> PluginOutput:
    ended = asyncio.ensure_future(process.wait())
    try:
        with TimeLimit(clock, PLUGIN_SECONDS):
            overflows = (out.overflowed.wait(), err.overflowed.wait())
            waits = [ended, *(asyncio.ensure_future(each) for each in overflows)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits[1:]:
                    each.cancel()
            if out.overflowed.is_set() or err.overflowed.is_set():
                raise PluginFailure(f"printed more than {MAX_OUTPUT_BYTES} bytes")
            with TimeLimit(clock, _PIPE_GRACE):
                await out.ended.wait()
                await err.ended.wait()
    finally:
        ended.cancel()
    if process.returncode is None:
        raise PluginFailure(f"gave no answer in {PLUGIN_SECONDS:.0f} seconds")
    return PluginOutput(bytes(out.data), bytes(err.data), process.returncode)


def _kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the id is not used again
        else:
            process.kill()


class _Pipe(asyncio.Protocol):
    """A pipe for a plugin's output; with asyncio's own, `wait` would also wait for its end."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._transport: asyncio.ReadTransport | None = None
        self.data = bytearray()
        self.ended = asyncio.Event()
        self.overflowed = asyncio.Event()

    async def start_reading(self) -> None:
        """Start to read; only the plugin keeps the end that is written to."""
        os.close(self.write_end)
        self.write_end = -1
        file = os.fdopen(self._read_end, "rb", buffering=0)
        self._read_end = -1
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, file)

    def data_received(self, data: bytes) -> None:
        """Keep the data, up to the limit."""
        self.data += data
        if len(self.data) > MAX_OUTPUT_BYTES:
            self.overflowed.set()
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that no more data comes."""
        self.ended.set()

    def close(self) -> None:
        """Close both ends."""
        for descriptor in (self.write_end, self._read_end):
            if descriptor >= 0:
                os.close(descriptor)
        self.write_end = self._read_end = -1
        if self._transport is not None:
            self._transport.close()
