"""Reserved ports and child processes, which end when they are stopped or their parent dies."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

import pytest

from everynode.clock import SystemClock
from everynode.localkube import processes
from everynode.localkube.processes import ChildProcess, FolderLock, Ports, ProcessError

OBEDIENT = "import time; print('here', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {OBEDIENT}"


def program(folder: Path, code: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code], folder, folder / "log")


async def log_says(process: ChildProcess, word: str) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 20
    while word not in process.log_end():
        assert clock.monotonic() < deadline
        await clock.sleep(0.01)


def test_a_reserved_port_waits_for_its_listener() -> None:
    with Ports() as ports:
        numbers = [ports.reserve() for _ in range(50)]
        assert len(set(numbers)) == 50
        with socket.socket() as foreign, pytest.raises(OSError, match="in use"):
            foreign.bind(("127.0.0.1", numbers[0]))
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", numbers[0]))
            listener.listen()


def test_a_folder_has_one_user(tmp_path: Path) -> None:
    first, second = FolderLock(), FolderLock()
    first.take(tmp_path)
    with pytest.raises(ProcessError, match="in use"):
        second.take(tmp_path)
    first.release()
    second.take(tmp_path)
    second.release()


async def test_a_program_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    process = program(tmp_path, "print('goodbye'); raise SystemExit(3)")
    assert process.pid is None
    process.require_running()
    process.start()
    await log_says(process, "goodbye")
    process.reap()
    with pytest.raises(ProcessError, match=r"ended with status 3(.|\n)*goodbye"):
        process.require_running()


@pytest.mark.parametrize(
    ("code", "number"),
    [(OBEDIENT, signal.SIGTERM), (STUBBORN, signal.SIGKILL)],
    ids=["obedient", "stubborn"],
)
async def test_stop_asks_first(tmp_path: Path, code: str, number: int) -> None:
    process = program(tmp_path, code)
    process.start()
    await log_says(process, "here")
    await processes.stop([process], grace=0.3)
    assert not process.running
    with pytest.raises(ProcessError, match=f"status -{int(number)}"):
        process.require_running()
