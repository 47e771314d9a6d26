"""The live view in a real terminal, tmux: pictures are drawn over each other and fit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everynode.kube import verbs
from everynode.kube.resources import ADVANCED
from tests.cli.test_up import ask
from tests.support.commands import Up, started
from tests.support.stage import daemonset

Screen = Callable[[int, str], list[str]]


@pytest.fixture
def screen(rollouts: Up, tmp_path: Path) -> Iterator[Screen]:
    """Return what stands on a terminal of some width when a command has ended."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is missing: apt-get install tmux")
    base = ["tmux", "-u", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    environment = {**os.environ, "KUBECONFIG": str(rollouts.kubeconfig), "LC_ALL": "C.UTF-8"}
    environment.pop("NO_COLOR", None)

    def tmux(*arguments: str) -> str:
        command = [*base, *arguments]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        return result.stdout

    def run(width: int, line: str) -> list[str]:
        everynode = f"{shlex.quote(sys.executable)} -m everynode {line}"
        told = f"{everynode}; echo exit code $?; {shlex.join([*base, 'wait-for', '-S', 'ended'])}"
        tmux("new-session", "-d", "-x", str(width), "-y", "40", f"{told}; exec cat")
        tmux("wait-for", "ended")
        return tmux("capture-pane", "-p").rstrip("\n").splitlines()

    try:
        yield run
    finally:
        subprocess.run([*base, "kill-server"], capture_output=True, check=False)


@pytest.mark.parametrize("width", [80, 140])
def test_pictures_are_drawn_over_each_other(screen: Screen, width: int) -> None:
    seen = screen(width, "status ads/stuck --watch --timeout 3s")
    text = "\n".join(seen)
    assert max(len(line) for line in seen) <= width
    assert [line for line in seen if "ads/stuck waiting" in line] == seen[:1]
    assert text.count("zone-a") == text.count("maxUnavailable") == 1, text
    assert seen[-2:] == ["everynode: not ended after 3 s; --timeout is over", "exit code 1"]


def test_a_server_that_goes_while_one_watches_is_told(tmp_path: Path) -> None:
    with started(tmp_path, "--nodes", "2", "--no-controller", "--no-dashboard") as up:
        ask(up, verbs.create(ADVANCED, daemonset("agent"), namespace="default"))
        command = [sys.executable, "-m", "everynode", "status", "agent", "--watch"]
        with subprocess.Popen(
            [*command, "--kubeconfig", str(up.kubeconfig)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as watching:
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert watching.stdout.readline().startswith("ads/agent unobserved: 0 of ")
            up.process.kill()
            warning = watching.stderr.readline()
            watching.terminate()
    assert re.match(r"warning: out of date, trying again: \S+: .*127\.0\.0\.1:\d+: ", warning)


@pytest.mark.parametrize("width", [80, 140])
def test_a_rollout_that_has_ended_is_drawn_once(screen: Screen, width: int) -> None:
    seen = screen(width, "status ads/held --watch")
    assert seen[0].startswith("ads/held held")
    assert any("━" in line for line in seen)
    assert seen[-1] == "exit code 0"
