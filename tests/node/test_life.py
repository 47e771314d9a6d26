"""A real node leaves nothing behind, however it ends."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everynode.localkube import node_cleanup
from everynode.localkube.control_plane import ControlPlane
from everynode.localkube.node import RealNode
from everynode.localkube.node_cleanup import CGROUPS
from everynode.localkube.processes import FolderLock
from tests.node.conftest import IMAGES

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubernetes,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("node"),
]


def traces() -> list[str]:
    """Folders, cgroups, bridges and mounts of nodes on this machine."""
    folders = Path(tempfile.gettempdir()).glob("everynode-node-*")
    cgroups = [*CGROUPS.glob("en-*"), *CGROUPS.glob("*/en-*")]
    bridges = Path("/sys/class/net").glob("en-*")
    mounts = Path("/proc/self/mountinfo").read_text().count("everynode-node-")
    return sorted(map(str, [*folders, *cgroups, *bridges])) + ["a mount"] * mounts


def new(before: list[str]) -> set[str]:
    return set(traces()) - set(before)


def has_begun(program: str, before: list[str]) -> bool:
    return any(Path(trace, "logs", f"{program}.log").exists() for trace in new(before))


@pytest.fixture
async def other(possible: None) -> AsyncIterator[ControlPlane]:
    """A control plane that no other test's DaemonSets live on."""
    async with ControlPlane() as made:
        yield made


async def test_a_node_that_is_stopped_leaves_nothing(other: ControlPlane) -> None:
    before = traces()
    async with RealNode(other, images=IMAGES):
        assert new(before)
    assert not new(before)


@pytest.mark.parametrize("begun", ["containerd", "kubelet"])
async def test_a_node_whose_start_is_cut_short_leaves_nothing(
    other: ControlPlane, begun: str
) -> None:
    before = traces()
    start = asyncio.create_task(RealNode(other, images=IMAGES).start())
    while not has_begun(begun, before):
        assert not start.done()
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not new(before)


async def test_what_a_killed_node_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    dead = tmp_path / "node-dead"
    (dead / "logs").mkdir(parents=True)
    node_cleanup.write_tag(dead, "en-none")
    living = tmp_path / "node-living"
    living.mkdir()
    node_cleanup.write_tag(living, "en-none")
    lock = FolderLock()
    lock.take(living)
    await node_cleanup.remove_abandoned_nodes(tmp_path, "node-")
    lock.release()
    assert os.listdir(tmp_path) == ["node-living"]
