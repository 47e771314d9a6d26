from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from everynode.cli.terminal.question import interruptible
from tests.support.commands import Up


class Asked:
    """A command that asks a question on a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal

    def read_until(self, text: str) -> str:
        seen = ""
        while text not in seen:
            seen += os.read(self._terminal, 4096).decode()
        return seen

    def answer(self, text: str) -> None:
        os.write(self._terminal, f"{text}\n".encode())


@contextmanager
def asked(up: Up, *arguments: str) -> Iterator[Asked]:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "everynode", *arguments, "--kubeconfig", str(up.kubeconfig)]
    process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    try:
        yield Asked(process, terminal)
    finally:
        process.kill()
        process.communicate()
        os.close(terminal)


def test_a_name_of_both_kinds_is_asked_about(rollouts: Up) -> None:
    with asked(rollouts, "status", "net") as question:
        question.read_until("There are two DaemonSets net. Which one (ads/net, ds/net): ")
        question.answer("ds/net")
        out, _ = question.process.communicate(timeout=120)
    assert out.decode().startswith("ds/net complete")


def test_ctrl_c_ends_a_question_at_once() -> None:
    async def ask() -> None:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("it still asks")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())


def test_no_is_no(rollouts: Up) -> None:
    with asked(rollouts, "pause", "done", "held") as question:
        question.read_until("? [y/N]: ")
        question.answer("n")
        assert question.process.wait(timeout=120) == 1
        assert "everynode: nothing was changed" in question.read_until("changed")
