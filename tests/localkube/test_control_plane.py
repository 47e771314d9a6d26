"""The real control plane starts, restarts, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everynode.clock import SystemClock
from everynode.localkube import binaries
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.processes import ProcessError
from tests.support.processes import alive, listening

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

# The smallest control plane: what the tests of starting and stopping need.
BARE = ControlPlaneOptions(scheduler=False, controllers=None)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}

# Starts a bare control plane, says which processes it made, and waits for its end.
PARENT = """
import asyncio, json
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions

async def main():
    plane = ControlPlane(ControlPlaneOptions(scheduler=False, controllers=None))
    async with plane:
        print(json.dumps(plane.pids), flush=True)
        await plane.broken()

asyncio.run(main())
"""


async def test_it_runs_a_cluster_and_leaves_nothing(programs: Path) -> None:
    async with ControlPlane(ControlPlaneOptions(service_accounts=True)) as plane:
        version = json.loads(await kubectl(programs, plane, "get", "--raw", "/version"))
        await kubectl(programs, plane, "create", "namespace", "agents")
        await kubectl(programs, plane, "create", "-f", "-", given=NODE)
        nodes = await kubectl(programs, plane, "get", "nodes", "-o", "name")
        # The controllers work: a new namespace gets its service account.
        await kubectl(
            programs, plane, "wait", "-n", "agents", "--for=create", "serviceaccount/default"
        )
        pids, folder = plane.pids, plane.folder
        addresses = {address for pid in pids.values() for address in listening(pid)}
        assert all(alive(pid) for pid in pids.values())

    assert version["gitVersion"] == binaries.RELEASE
    assert nodes == "node/one\n"
    assert sorted(pids) == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert {address.host for address in addresses} == {"127.0.0.1"}
    assert not any(alive(pid) for pid in pids.values())
    assert not folder.exists()


@pytest.mark.usefixtures("programs")
async def test_the_daemonset_controller_is_off_by_default() -> None:
    words = '"Warning: controller is disabled" controller="daemonset-controller"'
    async with ControlPlane(ControlPlaneOptions(scheduler=False)) as plane:
        log = plane.folder / "logs" / "kube-controller-manager.log"
        await until(lambda: words in log.read_text(), words)


async def test_a_folder_keeps_the_cluster(programs: Path, tmp_path: Path) -> None:
    options = ControlPlaneOptions(folder=tmp_path / "plane", scheduler=False, controllers=None)
    async with ControlPlane(options) as plane:
        token = plane.token
        with pytest.raises(ProcessError, match="in use by another control plane"):
            await ControlPlane(options).start()
        await kubectl(programs, plane, "create", "-f", "-", given=NODE)
        pids = plane.pids
        for name in plane.pids:
            await plane.restart(name)
        assert set(pids.values()).isdisjoint(plane.pids.values())
        assert await kubectl(programs, plane, "get", "nodes", "-o", "name") == "node/one\n"

    async with ControlPlane(options) as plane:
        assert plane.token == token
        assert await kubectl(programs, plane, "get", "nodes", "-o", "name") == "node/one\n"


@pytest.mark.usefixtures("programs")
async def test_a_program_that_cannot_start_is_named_with_its_words(tmp_path: Path) -> None:
    flags = {"kube-apiserver": ["--no-such-flag"]}
    plane = ControlPlane(ControlPlaneOptions(folder=tmp_path, extra_flags=flags))
    with pytest.raises(ProcessError, match=r"kube-apiserver ended(.|\n)*unknown flag"):
        await plane.start()
    assert not alive(plane.pids["etcd"])


@pytest.mark.usefixtures("programs")
async def test_a_program_that_dies_later_is_named() -> None:
    async with ControlPlane(BARE) as plane:
        os.kill(plane.pids["etcd"], signal.SIGKILL)
        with pytest.raises(ProcessError, match="etcd ended with status -9"):
            await plane.broken()


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
async def test_it_does_not_outlive_us(how: signal.Signals, tmp_path: Path) -> None:
    with start_parent(tmp_path) as parent:
        assert parent.stdout is not None
        line = await asyncio.to_thread(parent.stdout.readline)
        parent.send_signal(how)
    pids = json.loads(line)
    assert sorted(pids) == ["etcd", "kube-apiserver"]
    await until(lambda: not any(alive(pid) for pid in pids.values()), "no process is left")
    if how == signal.SIGINT:
        assert os.listdir(tmp_path) == []


def start_parent(temporary: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


async def kubectl(programs: Path, plane: ControlPlane, *args: str, given: Any = None) -> str:
    process = await asyncio.create_subprocess_exec(
        programs / "kubectl",
        f"--kubeconfig={plane.kubeconfig}",
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(json.dumps(given).encode() if given else None)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def until(holds: Callable[[], bool], what: str) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 30
    while not holds():
        assert clock.monotonic() < deadline, f"not within 30 s: {what}"
        await clock.sleep(0.05)
