"""A real API server for the tests that let it judge."""

from __future__ import annotations

import pytest

from everynode.cli.kubernetes.controlplane import ControlPlane
from tests.judge import Judge


@pytest.fixture(scope="session")
def judge(api_server: ControlPlane) -> Judge:
    """The real API server, as one that is asked."""
    return Judge(api_server)
