"""Child processes that end with this one: start, watch, stop; folder locks and free ports."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

# Runs between fork and exec: asks the kernel to kill this process when its parent thread ends
# (PR_SET_PDEATHSIG), checks that the parent is still there, and executes the program. A separate
# Python, because a preexec function may deadlock in a process with threads.
_LAUNCH = """
import os, sys
parent, argv = int(sys.argv[1]), sys.argv[2:]
if sys.platform == "linux":
    import ctypes, signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != parent:
    os._exit(1)
os.execv(argv[0], argv)
"""

_TICK = 0.05
_REAP_TIMEOUT = 10.0
_LOG_LINES = 20
_LOG_BYTES = 64_000

_clock = SystemClock()


class ProcessError(Exception):
    """A program ended unexpectedly, or did not become ready."""


class ChildProcess:
    """One program: it writes to a log file and ends with this process."""

    def __init__(
        self, argv: Sequence[str], folder: Path, log_file: Path, sockets: Sequence[Path] = ()
    ) -> None:
        self.name = Path(argv[0]).name
        self.log_file = log_file
        # Removed before a start: sockets of a killed program prevent a new one.
        self._sockets = sockets
        self._argv = list(argv)
        self._folder = folder
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, also after the end; None before the start."""
        return None if self._popen is None else self._popen.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Start the program in a session of its own, so that Ctrl-C reaches only this process."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        for path in self._sockets:
            path.unlink(missing_ok=True)
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *self._argv]
        with self.log_file.open("ab") as log:
            self._popen = subprocess.Popen(
                launch,
                cwd=self._folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def require_running(self) -> None:
        """Raise, with the end of the log, if the program has ended."""
        if self._popen is not None and self._popen.poll() is not None:
            raise ProcessError(
                f"{self.name} ended with status {self._popen.returncode}. {self.log_end()}"
            )

    def log_end(self) -> str:
        """The last lines of the log, and its path."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(0, self.log_file.stat().st_size - _LOG_BYTES))
                text = log.read().decode(errors="replace")
        except OSError as error:
            return f"Its log cannot be read: {error}"
        lines = text.splitlines()[-_LOG_LINES:]
        return "\n".join([f"The end of {self.log_file}:", *lines])

    def signal(self, number: int = signal.SIGKILL) -> None:
        """Send a signal if the program is running."""
        if self._popen is not None:
            self._popen.send_signal(number)

    def reap(self) -> None:
        """Wait until a killed program has ended."""
        if self._popen is not None:
            self._popen.wait(timeout=_REAP_TIMEOUT)


async def stop(processes: Iterable[ChildProcess], grace: float) -> None:
    """Send SIGTERM to all, and SIGKILL to those that still run after the grace period."""
    running = [process for process in processes if process.running]
    try:
        for process in running:
            process.signal(signal.SIGTERM)
        deadline = _clock.monotonic() + grace
        while any(process.running for process in running) and _clock.monotonic() < deadline:
            await _clock.sleep(_TICK)
    finally:
        kill(running)


def kill(processes: Iterable[ChildProcess]) -> None:
    """Send SIGKILL to all and wait until they have ended."""
    listed = list(processes)
    for process in listed:
        process.signal(signal.SIGKILL)
    for process in listed:
        process.reap()


class FolderLock:
    """An exclusive lock of a folder; the kernel releases it when the process ends."""

    def __init__(self) -> None:
        self._file: int | None = None

    def take(self, folder: Path) -> None:
        """Lock the folder; raises ProcessError if another process holds it."""
        self._file = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise ProcessError(f"{folder} is in use by another control plane") from None

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Ports:
    """Free ports on loopback, reserved until their listeners start.

    A bound socket that does not listen lets a listener with SO_REUSEADDR take the port (every Go
    program sets it), but the kernel gives the port to no outgoing connection and to no bind to
    port 0.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self, port: int = 0) -> int:
        """Reserve this port, or any free one."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
        number: int = held.getsockname()[1]
        return number

    def __enter__(self) -> Ports:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for held in self._sockets:
            held.close()


def _environment() -> dict[str, str]:
    """This process's environment without ETCD_* and proxy variables, which change the programs."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("ETCD_") and not key.lower().endswith("_proxy")
    }
