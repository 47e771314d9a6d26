"""Everynode's image as hack/image/build makes it of the Containerfile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import everynode
from tests.support.paths import ROOT


class OwnImage:
    """The image of these sources; without it the test is skipped, or fails if it is required."""

    name = f"example.test/everynode:{everynode.__version__}"

    def __init__(self) -> None:
        """Find the archive."""
        found = subprocess.run(
            [ROOT / "hack" / "image" / "build", "--print"], capture_output=True, text=True
        )
        if found.returncode != 0:
            reason = "no image of these sources: run `make image` as root on Debian or Ubuntu"
            if os.environ.get("EVERYNODE_REQUIRE_NODE") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        self._archive = Path(found.stdout.strip())

    def write(self, path: Path, busybox: Path) -> None:
        """Copy the image, a tar file in OCI layout."""
        shutil.copyfile(self._archive, path)
