"""The locked dependencies as wheels for other platforms, as hack/wheels downloads them."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.kubernetes import REQUIRED
from tests.support.paths import ROOT

ARCHITECTURE: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")


def locked_wheels(platform: str, python: str = "3.11") -> list[Path]:
    """Return the wheels for a platform; skip the test, or fail, if they are not there."""
    line = [sys.executable, str(ROOT / "hack" / "wheels"), "--print", "--python", python, platform]
    found = subprocess.run(line, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        reason = f"no wheels for {platform}: run `make wheels`"
        pytest.fail(reason, pytrace=False) if REQUIRED else pytest.skip(reason)
    return sorted(Path(found.stdout.strip()).glob("*.whl"))
