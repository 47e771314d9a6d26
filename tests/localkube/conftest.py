"""Fixtures with real Kubernetes binaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import kubernetes


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the real programs; without it the test is skipped, or fails if required."""
    return kubernetes.programs()
