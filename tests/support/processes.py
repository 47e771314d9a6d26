"""Processes of this machine: children, and the addresses on which they listen."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_LISTENS = "0A"


class Address(NamedTuple):
    """An address on which a process listens."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether it is reachable from this machine only."""
        return ipaddress.ip_address(self.host).is_loopback


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    return _stat(pid)[0] not in "ZX"


def _stat(pid: int) -> tuple[str, int]:
    """State and parent of a process; X and 0 if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def descendants(pid: int) -> dict[int, str]:
    """All descendants of a process, with the names of their programs."""
    parents = {int(path.name): _stat(int(path.name))[1] for path in _processes()}
    family, found = [pid], {}
    for parent in family:
        children = [child for child, its in parents.items() if its == parent]
        family += children
        found.update({child: Path(f"/proc/{child}/comm").read_text().strip() for child in children})
    return found


def mentioning(text: str) -> list[int]:
    """The processes whose command line contains the text."""
    found = []
    for path in _processes():
        try:
            said = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in said and alive(int(path.name)):
            found.append(int(path.name))
    return found


def _processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit())


def listening(pid: int) -> set[Address]:
    """The addresses on which a process listens."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            target = os.readlink(entry)
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    return {address for address, inode in _listeners() if inode in sockets}


def taken(addresses: Iterable[Address]) -> set[Address]:
    """The given addresses on which any process listens now."""
    return {address for address, _ in _listeners()} & set(addresses)


def _listeners() -> Iterator[tuple[Address, str]]:
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = row.split()
            if state == _LISTENS:
                host, _, port = local.partition(":")
                yield Address(_host(host), int(port, 16)), rest[5]


def _host(text: str) -> str:
    """Decode an address, which the kernel writes as words in the machine's byte order."""
    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words)))
