from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from everynode.api.crd import crd
from everynode.apiserver.server import Server
from everynode.components.kubelet.behaviour import Behaviour
from everynode.kube import verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.errors import NotServed
from everynode.kube.http.transport import HttpTransport
from everynode.kube.resources import ADVANCED, CRDS, NAMESPACES, NODES
from everynode.localkube.control_plane import ControlPlane
from tests.support.stage import QUICK, Stage, clock

Play = Callable[..., AbstractAsyncContextManager[Stage]]
_number = itertools.count(1)


# A scenario takes seconds. That is how long it may take on a machine that has other things to do.
_LONGEST = pytest.mark.timeout(300)


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=_LONGEST),
        pytest.param("kubernetes", marks=[_LONGEST, pytest.mark.kubernetes]),
    ],
)
def play(request: pytest.FixtureRequest) -> Play:
    """Opens a stage: `async with play(nodes=5) as stage`."""
    if request.param == "embedded":
        return _play_embedded
    plane: ControlPlane = request.getfixturevalue("control_plane")

    return partial(play_real, plane)


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
async def play_real(
    plane: ControlPlane, *, nodes: int, behaviour: Behaviour = QUICK
) -> AsyncIterator[Stage]:
    """Open a stage on a control plane."""
    time = clock()
    transport = HttpTransport(load_cluster_config(time, kubeconfig=str(plane.kubeconfig)), time)
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
