"""A real API server for the tests that let it judge."""

from __future__ import annotations

import pytest

from everynode.localkube.control_plane import ControlPlane
from tests.support.real_server import RealApiServer


@pytest.fixture(scope="session")
def judge(api_server: ControlPlane) -> RealApiServer:
    """The real API server, as one that is asked."""
    return RealApiServer(api_server)
