"""CPU and memory of a process, and the samples of its /metrics."""

from __future__ import annotations

import os
import re
import resource
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One look at a process."""

    cpu: float  # seconds, user and system, all threads
    resident: float  # MB
    peak: float  # MB


def read_process(pid: int) -> ProcessUsage:
    # The name of the program, in brackets, may contain anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    memory = {
        name: float(value.split()[0]) / 1024
        for name, _, value in (
            line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        if name in ("VmRSS", "VmHWM")
    }
    return ProcessUsage(
        (int(fields[11]) + int(fields[12])) / _TICK, memory["VmRSS"], memory["VmHWM"]
    )


def own_resident_bytes() -> int:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def samples(exposition: str, name: str) -> list[tuple[dict[str, str], float]]:
    """All samples of one metric, with their labels."""
    found = []
    for line in exposition.splitlines():
        match = _SAMPLE.match(line)
        if match is not None and match["name"] == name:
            found.append((dict(_LABEL.findall(match["labels"])), float(match["value"])))
    return found
