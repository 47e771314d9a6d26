"""The instructions of the Containerfile, for tests that compare them with something else."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    """Return the arguments of all instructions of one kind, long lines joined."""
    joined = re.sub(r"\\\n\s*", "", TEXT)
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)
