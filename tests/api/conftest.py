"""A real API server, whose answers are compared with ours."""

from __future__ import annotations

import pytest

from everynode.localkube.control_plane import ControlPlane
from tests.support.real_server import RealApiServer


@pytest.fixture(scope="session")
def real(api_server: ControlPlane) -> RealApiServer:
    """A client of the real API server."""
    return RealApiServer(api_server)
