from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.e2e.stage import QUICK, Stage, clock

from everynode.api.crd import crd
from everynode.cli.kubernetes.binaries import BinariesMissingError, find
from everynode.cli.kubernetes.controlplane import ControlPlane
from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.server import Server
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.config import load
from everynode.kube.errors import NotServed
from everynode.kube.http import HttpTransport
from everynode.kube.resources import ADVANCED, CRDS, NAMESPACES, NODES

Play = Callable[..., AbstractAsyncContextManager[Stage]]
_number = itertools.count(1)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """One real control plane for all scenarios of a process."""
    try:
        find()
    except BinariesMissingError:
        import os

        if os.environ.get("EVERYNODE_REQUIRE_KUBERNETES") == "1":
            raise
        pytest.skip("no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS")
    made = ControlPlane()
    asyncio.run(made.start())
    try:
        yield made
    finally:
        asyncio.run(made.stop())


@pytest.fixture(
    params=[
        "embedded",
        pytest.param("kubernetes", marks=[pytest.mark.kubernetes, pytest.mark.judge]),
    ],
)
def play(request: pytest.FixtureRequest) -> Play:
    """Opens a stage: `async with play(nodes=5) as stage`."""
    if request.param == "embedded":
        return _play_embedded
    plane: ControlPlane = request.getfixturevalue("plane")

    def play_real(
        *, nodes: int, behaviour: Behaviour = QUICK
    ) -> AbstractAsyncContextManager[Stage]:
        return _play_real(plane, nodes=nodes, behaviour=behaviour)

    return play_real


@asynccontextmanager
async def _play_embedded(*, nodes: int, behaviour: Behaviour = QUICK) -> AsyncIterator[Stage]:
    time = clock()
    server = Server(clock=time)

    async def serve(folder: Path) -> str:
        await server.start()
        path = folder / "kubeconfig"
        path.write_text(json.dumps(server.kubeconfig()))
        return str(path)

    stage = Stage(server.transport, time, namespace="scenario", real=False)
    stage.serve = serve
    try:
        async with stage.playing(nodes=nodes, behaviour=behaviour):
            yield stage
    finally:
        await server.stop()


async def _until_served(client: Client) -> None:
    """A kind is served a moment after its definition is there."""
    while True:
        with suppress(NotServed):
            await client.read(verbs.list_page(ADVANCED), bytes)
            return
        await asyncio.sleep(0.05)


@asynccontextmanager
async def _play_real(
    plane: ControlPlane, *, nodes: int, behaviour: Behaviour
) -> AsyncIterator[Stage]:
    time = clock()
    transport = HttpTransport(load(time, kubeconfig=str(plane.kubeconfig)), time)
    client = Client(transport, time)
    await client.write(
        verbs.apply(CRDS, crd()["metadata"]["name"], crd(), manager="test", force=True), bytes
    )
    await _until_served(client)

    async def serve(folder: Path) -> str:
        return str(plane.kubeconfig)

    stage = Stage(transport, time, namespace=f"scenario-{next(_number)}", real=True)
    stage.serve = serve
    try:
        async with stage.playing(nodes=nodes, behaviour=behaviour):
            yield stage
    finally:
        await client.write(verbs.delete(NAMESPACES, stage.namespace), bytes)
        for node in stage.all_nodes():
            await client.write(verbs.delete(NODES, node.name), bytes)
        await transport.close()
        # Connections under TLS end in the background, and nobody tells when they have.
        await asyncio.sleep(0.1)
