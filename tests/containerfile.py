"""What the Containerfile says, for tests that compare it and for those that play by it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).resolve().parent.parent / "Containerfile").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    """Return the arguments of all instructions of one kind, long lines joined."""
    joined = re.sub(r"\\\n\s*", "", TEXT)
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def settings() -> dict[str, Any]:
    """Return what the image tells whoever runs it, by the names of the OCI image format."""
    return {
        "Env": [word for line in instructions("ENV") for word in shlex.split(line)],
        "User": instructions("USER")[-1],
        "WorkingDir": instructions("WORKDIR")[-1],
        "Entrypoint": json.loads(instructions("ENTRYPOINT")[-1]),
        "Cmd": json.loads(instructions("CMD")[-1]),
    }
