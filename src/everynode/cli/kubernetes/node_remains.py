"""What a node has on the machine outside its namespaces: cgroups, a bridge, a folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.cli.kubernetes.processes import FolderLock, ProcessError
from everynode.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUPS = Path("/sys/fs/cgroup")
_NOTE = "tag"
_ROUNDS = 100
_TICK = 0.1

_clock = SystemClock()


def make_cgroup(tag: str) -> None:
    """A cgroup of our own in every hierarchy there is; kubelet makes those of the pods below it."""
    for hierarchy in _hierarchies():
        made = hierarchy / tag
        made.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            # Of cgroups v1: nothing may run in a cpuset that has none.
            if (made / name).exists() and not (made / "cgroup.controllers").exists():
                (made / name).write_text((hierarchy / name).read_text())
        if (made / "cgroup.controllers").exists():
            _pass_on_controllers(made.parent, made)


def _pass_on_controllers(*folders: Path) -> None:
    for folder in folders:
        for controller in (folder / "cgroup.controllers").read_text().split():
            try:
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                continue  # used elsewhere, or forbidden here: kubelet says if it needs it


def note(folder: Path, tag: str) -> None:
    """Write down what the node in a folder calls its things, for a successor."""
    (folder / _NOTE).write_text(tag)


async def sweep(place: Path, prefix: str) -> None:
    """Remove what nodes left whose process was killed: nobody holds their folders any more."""
    for folder in _folders(place, prefix):
        lock = FolderLock()
        try:
            lock.take(folder)
            await remove(folder, (folder / _NOTE).read_text())
        except (ProcessError, OSError):
            continue  # in use, or just being made or removed
        finally:
            lock.release()


def _folders(place: Path, prefix: str) -> list[Path]:
    return sorted(place.glob(f"{prefix}*/"))


async def remove(folder: Path, tag: str) -> None:
    """Remove every trace of a node whose processes were killed."""
    for _ in range(_ROUNDS):
        pids = sorted(set(_in_cgroup(tag)))
        if not pids:
            break
        for pid in pids:
            _kill(pid)
        await _clock.sleep(_TICK)
    _remove_files(folder, tag)


def _remove_files(folder: Path, tag: str) -> None:
    _remove_cgroups(tag)
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
    """Our cgroups, the deepest first."""
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / tag, topdown=False):
            yield Path(folder)


def _in_cgroup(tag: str) -> Iterator[int]:
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


def _remove_cgroups(tag: str) -> None:
    for cgroup in _cgroups(tag):
        try:
            cgroup.rmdir()
        except OSError:
            continue  # the kernel is still busy with it; it holds nothing any more
