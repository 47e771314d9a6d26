"""The benchmark leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

LIMIT = 40.0


def running(place: Path) -> list[str]:
    """The programs that were told to work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it has just ended
                continue
            if any(str(place) in word for word in argv):
                found.append(" ".join(argv))
    return found


def until(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, f"it never came to pass that {what}"
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_the_middle_of_a_benchmark_leaves_nothing_running(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bench.rollout", "--server=embedded", "--nodes=5"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    bench = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        # The nodes with their server, and the controller.
        until("both were started", lambda: len(running(tmp_path)) >= 2)
        bench.send_signal(number)
        bench.wait(timeout=LIMIT)
        assert running(tmp_path) == []
        assert list(tmp_path.iterdir()) == []
    finally:
        bench.kill()
        bench.communicate()
