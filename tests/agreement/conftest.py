"""A real API server and ours, side by side."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest
from tests.agreement.likeness import Conversation
from tests.agreement.servers import Server

from everynode.cli.kubernetes.controlplane import ControlPlane
from everynode.clock import SystemClock
from everynode.cluster.certificates import new_identity
from everynode.cluster.https import HttpsServer
from everynode.cluster.rest import Api
from everynode.cluster.server import HOST


@pytest.fixture
async def real(api_server: ControlPlane) -> AsyncIterator[Server]:
    server = Server(api_server.url, api_server.token, api_server.ssl_context())
    yield server
    await server.close()


@pytest.fixture
async def ours() -> AsyncIterator[Server]:
    """Our API, without the certificate in every namespace that controllers put there."""
    clock = SystemClock()
    identity = new_identity(clock)
    serving = HttpsServer(Api(clock=clock), token=identity.token, clock=clock)
    await serving.start(host=HOST, port=0, context=identity.context())
    context = ssl.create_default_context(cadata=identity.authority)
    server = Server(f"https://{HOST}:{serving.port}", identity.token, context)
    yield server
    await server.close()
    await serving.stop()


@pytest.fixture
def conversation(real: Server, ours: Server) -> Conversation:
    return Conversation(real, ours)
