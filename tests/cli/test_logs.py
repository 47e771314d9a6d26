"""`logs` and `exec` find the pod and leave the rest to kubectl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everynode.cli.logs import command
from tests.support.commands import Up, typed


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    """A program that prints how it was called."""
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    return tmp_path


def run(up: Up, path: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    name, *rest = arguments
    words = [sys.executable, "-m", "everynode", name, "--kubeconfig", str(up.kubeconfig), *rest]
    environment = {**os.environ, "PATH": str(path)}
    return subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def test_logs_are_those_of_the_pod_on_the_node(rollouts: Up, kubectl: Path) -> None:
    asked = ("logs", "held", "--node", "node-0006", "--tail", "5", "-f")
    kubeconfig, file, space, name, verb, pod, *rest = run(
        rollouts, kubectl, *asked
    ).stdout.splitlines()
    assert (kubeconfig, file) == ("--kubeconfig", str(rollouts.kubeconfig))
    assert (space, name, verb, rest) == ("--namespace", "default", "logs", ["--tail", "5", "-f"])
    assert pod.startswith("held-")


def test_a_command_runs_in_the_pod_on_the_node(rollouts: Up, kubectl: Path) -> None:
    asked = ("exec", "ds/net", "--node", "node-0002", "-it", "--", "sh", "-c", "exit 3")
    lines = run(rollouts, kubectl, *asked).stdout.splitlines()
    assert lines[4] == "exec"
    assert lines[6:] == ["-i", "-t", "--", "sh", "-c", "exit 3"]
    nothing = run(rollouts, kubectl, "exec", "ds/net", "--node", "node-0002")
    assert (nothing.returncode, "say what to run" in nothing.stderr) == (2, True)


def test_a_missing_kubectl_is_named(rollouts: Up, tmp_path: Path) -> None:
    result = run(rollouts, tmp_path / "empty", "logs", "held", "--node", "node-0006")
    assert result.returncode == 1
    assert "kubectl is not on PATH; install it, or run where it is: kubectl" in result.stderr


def test_a_node_without_a_pod_is_named(rollouts: Up) -> None:
    result = typed(command, rollouts, "held", "--node", "node-0001")
    assert "has no pod on node node-0001; `everynode why node-0001 ads/held`" in str(
        result.exception
    )
