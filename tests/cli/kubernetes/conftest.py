"""Where the tests get a real Kubernetes from, and what happens where there is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from everynode.cli.kubernetes import binaries

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the real programs; without it the test is skipped, or fails if required."""
    try:
        return binaries.find()
    except binaries.BinariesMissingError as error:
        if os.environ.get("EVERYNODE_REQUIRE_KUBERNETES") == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip("no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS")
