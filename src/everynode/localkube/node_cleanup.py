"""Cleanup of a real node: the cgroups, bridge and folder that it has outside its namespaces."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.clock import SystemClock
from everynode.localkube.processes import FolderLock, ProcessError

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUPS = Path("/sys/fs/cgroup")
_TAG_FILE = "tag"
_KILL_ATTEMPTS = 100
_TICK = 0.1

_clock = SystemClock()


def make_cgroup(tag: str) -> None:
    """Make the node's cgroup in every hierarchy; kubelet makes those of the pods below it."""
    for hierarchy in _hierarchies():
        cgroup = hierarchy / tag
        cgroup.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            # Cgroups v1: no process can join a cpuset without CPUs and memory nodes.
            if (cgroup / name).exists() and not (cgroup / "cgroup.controllers").exists():
                (cgroup / name).write_text((hierarchy / name).read_text())
        if (cgroup / "cgroup.controllers").exists():
            _enable_controllers(cgroup.parent, cgroup)


def _enable_controllers(*folders: Path) -> None:
    for folder in folders:
        for controller in (folder / "cgroup.controllers").read_text().split():
            try:
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                continue  # in use elsewhere or forbidden; kubelet reports it if it needs it


def write_tag(folder: Path, tag: str) -> None:
    """Write the node's tag into its folder, so that a later run can remove a killed node."""
    (folder / _TAG_FILE).write_text(tag)


async def remove_abandoned_nodes(place: Path, prefix: str) -> None:
    """Remove the remains of nodes whose process was killed: their folders are not locked."""
    for folder in _folders(place, prefix):
        lock = FolderLock()
        try:
            lock.take(folder)
            await remove_node(folder, (folder / _TAG_FILE).read_text())
        except (ProcessError, OSError):
            continue  # in use, or just being made or removed
        finally:
            lock.release()


def _folders(place: Path, prefix: str) -> list[Path]:
    return sorted(place.glob(f"{prefix}*/"))


async def remove_node(folder: Path, tag: str) -> None:
    """Kill the processes in the node's cgroup, then remove cgroups, bridge and folder."""
    for _ in range(_KILL_ATTEMPTS):
        for pid in sorted(set(_pids_in_cgroup(tag))):
            _kill(pid)
        if _remove_cgroups(tag):
            break
        await _clock.sleep(_TICK)
    _remove_files(folder, tag)


def _remove_files(folder: Path, tag: str) -> None:
    if Path("/sys/class/net", tag).exists():
        subprocess.run(["ip", "link", "delete", tag], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def _hierarchies() -> list[Path]:
    """The roots of all cgroup hierarchies: one with cgroups v2, one per controller with v1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    roots = {path.resolve() for path in CGROUPS.iterdir() if path.is_dir()}
    return sorted(root for root in roots if (root / "cgroup.procs").exists())


def _cgroups(tag: str) -> Iterator[Path]:
    """The node's cgroups, the deepest first."""
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / tag, topdown=False):
            yield Path(folder)


def _pids_in_cgroup(tag: str) -> Iterator[int]:
    for cgroup in _cgroups(tag):
        try:
            yield from map(int, (cgroup / "cgroup.procs").read_text().split())
        except OSError:
            continue  # gone meanwhile


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _remove_cgroups(tag: str) -> bool:
    """Return whether all are gone; the kernel keeps one until its last process has fully exited."""
    for cgroup in _cgroups(tag):
        try:
            cgroup.rmdir()
        except OSError:
            continue
    return not any(_cgroups(tag))
