"""`everynode up --kubernetes`: simulated nodes behind a real control plane."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from everynode.clock import SystemClock
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS, LEASES, NODES
from everynode.kube.verbs import ListOptions
from everynode.localkube import binaries
from tests.cli.test_up import ask, daemonset, until_ready
from tests.support import kubernetes
from tests.support.commands import started
from tests.support.processes import alive, descendants, listening, mentioning, taken

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]


COMPONENTS = ["etcd", "kube-apiserver", "kube-controller", "kube-scheduler"]  # as the kernel cuts
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _programs() -> None:
    kubernetes.programs()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for everything that is temporary."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_both_kinds_of_daemonsets_run_on_simulated_nodes(tmp_path: Path) -> None:
    with started(tmp_path, "--kubernetes", "--nodes", "5", "--speed", "10") as up:
        ask(up, daemonset(DAEMONSETS, "native"), daemonset(ADVANCED, "advanced"))
        until_ready(up, DAEMONSETS, "native", 5)
        until_ready(up, ADVANCED, "advanced", 5)
        nodes, leases = ask(
            up,
            verbs.list_page(NODES),
            verbs.list_page(LEASES, options=ListOptions("kube-node-lease")),
        )
        assert [node["spec"].get("taints") for node in nodes["items"]] == [None] * 5
        assert len(leases["items"]) == 5
        assert up.stop(signal.SIGINT)[0] == 0


@pytest.mark.parametrize("how", SIGNALS)
def test_everything_it_starts_it_stops(
    tmp_path: Path, temporary: Path, how: signal.Signals
) -> None:
    with started(tmp_path, "--kubernetes", "--nodes", "1") as up:
        family = descendants(up.process.pid)
        assert sorted(family.values()) == COMPONENTS
        addresses = {each for pid in (up.process.pid, *family) for each in listening(pid)}
        assert len(addresses) == 4  # the dashboard is one; etcd has only files
        assert all(address.loopback for address in addresses)
        assert list(temporary.iterdir())
        code, errors = up.stop(how)
    assert code == 0
    assert "Traceback" not in errors
    assert not any(map(alive, family))
    assert not taken(addresses)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("how", SIGNALS)
def test_it_can_be_stopped_before_it_is_ready(
    tmp_path: Path, temporary: Path, how: signal.Signals
) -> None:
    command = [sys.executable, "-m", "everynode", "up", "--kubernetes"]
    with subprocess.Popen(
        [*command, f"--kubeconfig={tmp_path / 'kubeconfig'}"], stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: "kube-apiserver" in descendants(process.pid).values())
        family = descendants(process.pid)
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert not any(map(alive, family))
    assert not list(temporary.iterdir())


def test_a_component_that_cannot_start_is_named_and_nothing_is_left(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in binaries.CONTROL_PLANE:
        (assets / name).symlink_to(binaries.find() / name)
    (assets / "kube-scheduler").unlink()
    (assets / "kube-scheduler").write_text("#!/bin/sh\necho out of luck\nexit 3\n")
    (assets / "kube-scheduler").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    command = [sys.executable, "-m", "everynode", "up", "--kubernetes"]
    ended = subprocess.run(
        [*command, f"--kubeconfig={tmp_path / 'kubeconfig'}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "kube-scheduler ended with status 3" in ended.stderr
    assert "out of luck" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not mentioning(str(tmp_path))
    assert not list(temporary.iterdir())


def until(holds: Callable[[], bool]) -> None:
    async def look() -> None:
        async with asyncio.timeout(120):
            while not holds():
                await SystemClock().sleep(0.05)

    asyncio.run(look())
