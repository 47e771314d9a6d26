"""A real API server and ours, side by side."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from everynode.api import keys
from everynode.api.crd import crd
from everynode.apiserver.server import HOST
from everynode.apiserver.storage.store import Store
from everynode.apiserver.transport.certificates import new_identity
from everynode.apiserver.transport.https import HttpsServer
from everynode.apiserver.verbs.dispatch import Api
from everynode.clock import SystemClock
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.control_plane_config import API_SERVER
from tests.agreement.normalise import Conversation
from tests.agreement.servers import Server
from tests.support import kubernetes
from tests.support.manifest_corpus import daemonset
from tests.support.real_server import RealApiServer


@pytest.fixture(scope="session")
def installed(api_server: ControlPlane) -> RealApiServer:
    """The real server, with the definition of the Advanced DaemonSet, which ours always has."""
    return install(api_server)


def install(plane: ControlPlane) -> RealApiServer:
    """Define the Advanced DaemonSet and wait until it is served."""
    real = RealApiServer(plane)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = real.ask("POST", path, crd())
    # The fuzz tests ask the same server, and may have been first.
    assert answer.code in (201, 409), answer.body["message"]
    for version in (keys.V1ALPHA1, keys.V1BETA1):
        # It is served a moment later.
        assert any(real.try_out(daemonset(version)).code == 201 for _ in range(3000))
    return real


@pytest.fixture(scope="session")
def previous_release() -> Iterator[ControlPlane]:
    """A real API server of the release before, with the definition of the Advanced DaemonSet."""
    programs = {API_SERVER: kubernetes.previous_program(API_SERVER)}
    options = ControlPlaneOptions(controllers=None, scheduler=False, other_programs=programs)
    with kubernetes.running(options) as plane:
        install(plane)
        yield plane


@asynccontextmanager
async def asking(plane: ControlPlane) -> AsyncIterator[Server]:
    server = Server(plane.url, plane.token, plane.ssl_context())
    yield server
    await server.close()


@pytest.fixture
async def real(api_server: ControlPlane) -> AsyncIterator[Server]:
    async with asking(api_server) as server:
        yield server


@pytest.fixture
async def previous(previous_release: ControlPlane) -> AsyncIterator[Server]:
    async with asking(previous_release) as server:
        yield server


@pytest.fixture
async def staffed(control_plane: ControlPlane) -> AsyncIterator[Server]:
    """A real API server with the controllers that belong to it."""
    async with asking(control_plane) as server:
        yield server


@pytest.fixture
async def forgetful() -> AsyncIterator[Server]:
    """A real API server that forgets within two seconds what was."""
    flags = {"kube-apiserver": ["--etcd-compaction-interval=1s"]}
    options = ControlPlaneOptions(controllers=None, scheduler=False, extra_flags=flags)
    kubernetes.programs(options.components)
    async with ControlPlane(options) as plane, asking(plane) as server:
        yield server


@pytest.fixture
async def ours() -> AsyncIterator[Server]:
    """Our API, without the certificate in every namespace that controllers put there."""
    async with _serving(Store()) as server:
        yield server


@pytest.fixture
async def ours_forgetful() -> AsyncIterator[Server]:
    """Our API, with room for no more than one change in its memory."""
    async with _serving(Store(history_bytes=4000)) as server:
        yield server


@asynccontextmanager
async def _serving(store: Store) -> AsyncIterator[Server]:
    clock = SystemClock()
    identity = new_identity(clock)
    api = Api(clock=clock, store=store)
    serving = HttpsServer(api, token=identity.token, clock=clock)
    await serving.start(host=HOST, port=0, context=identity.ssl_context())
    context = ssl.create_default_context(cadata=identity.authority)
    server = Server(f"https://{HOST}:{serving.port}", identity.token, context)
    yield server
    await server.close()
    await serving.stop()


@pytest.fixture
def conversation(real: Server, ours: Server) -> Conversation:
    return Conversation(real, ours)
