"""Containerfile parser: its instructions and image settings, for tests that compare or use them."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from tests.support.paths import ROOT

TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    """Return the arguments of all instructions of one kind, long lines joined."""
    joined = re.sub(r"\\\n\s*", "", TEXT)
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def settings() -> dict[str, Any]:
    """Return the image's runtime configuration, by the field names of the OCI image format."""
    return {
        "Env": [word for line in instructions("ENV") for word in shlex.split(line)],
        "User": instructions("USER")[-1],
        "WorkingDir": instructions("WORKDIR")[-1],
        "Entrypoint": json.loads(instructions("ENTRYPOINT")[-1]),
        "Cmd": json.loads(instructions("CMD")[-1]),
    }
