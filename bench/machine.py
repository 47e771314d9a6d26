"""Result files: each result with the machine and the command that produced it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

RESULTS = Path(__file__).parent / "results"


def append(name: str, rows: Sequence[msgspec.Struct], **settings: str) -> None:
    """Add a line to bench/results/NAME.jsonl."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["python -m", module.name if module else name, *sys.argv[1:]]),
        "commit": _commit(),
        "machine": describe(),
        **settings,
        "rows": [_rounded(row) for row in rows],
    }
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def describe() -> dict[str, str | int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(memory / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str:
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def _rounded(row: msgspec.Struct) -> dict[str, object]:
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in msgspec.to_builtins(row).items()
    }
