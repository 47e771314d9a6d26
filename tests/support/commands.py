"""CLI commands for tests, and `everynode up` in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import yaml
from click.testing import CliRunner, Result


class Up:
    """A running `everynode up`."""

    def __init__(self, process: subprocess.Popen[str], kubeconfig: Path) -> None:
        self.process = process
        self.kubeconfig = kubeconfig
        self.said: list[str] = []

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if self.said[-1] == "ready":
                return
        raise AssertionError(f"it ended: {self.process.communicate()[1]}")

    @property
    def steps(self) -> list[str]:
        """The commands that it suggests."""
        return [line.strip() for line in self.said if line.startswith("    ")]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Stop the process; return its exit code and stderr. The rest of stdout is kept."""
        self.process.send_signal(how)
        rest, errors = self.process.communicate(timeout=120)
        self.said += rest.splitlines()
        return self.process.returncode, errors


def kubeconfig(folder: Path, server: str, *, namespace: str = "default") -> str:
    """Write a kubeconfig whose only context, `here`, points to a server."""
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "namespace": namespace}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def everynode(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one CLI command in a process."""
    command = [sys.executable, "-m", "everynode", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def typed(command: click.Command, up: Up, *arguments: str) -> Result:
    """Run one CLI command against a running cluster, in this process."""
    environment = {"KUBECONFIG": str(up.kubeconfig)}
    return CliRunner().invoke(command, [*arguments], env=environment)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Up]:
    """Start `everynode up` and wait until it is ready; its kubeconfig is in the folder."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "everynode", "up", "--kubeconfig", str(kubeconfig), *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    up = Up(process, kubeconfig)
    try:
        up.wait_until_ready()
        yield up
    finally:
        process.kill()
        process.communicate()
