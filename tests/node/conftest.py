"""One real node on a real control plane; a machine that cannot run one skips the tests."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest

from everynode.api.crd import crd
from everynode.kube import verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.errors import NotServed
from everynode.kube.http.transport import HttpTransport
from everynode.kube.resources import ADVANCED, CRDS, NAMESPACES
from everynode.localkube.binaries import BinariesMissingError
from everynode.localkube.control_plane import ControlPlane
from everynode.localkube.node import NodeImpossibleError, RealNode, require_node_support
from everynode.localkube.node_images import Image
from tests.support.stage import Stage, clock

Play = Callable[[], AbstractAsyncContextManager[Stage]]

# Runs until it is asked to stop, and then stops at once.
COMMAND = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done", "agent"]
IMAGES = [Image(f"example.test/agent:v{number}", COMMAND) for number in (1, 2)]
_number = itertools.count(1)


@pytest.fixture(scope="session")
def possible() -> None:
    """Skip where this machine cannot be a node, or fail if it must."""
    try:
        require_node_support()
    except (NodeImpossibleError, BinariesMissingError) as error:
        if os.environ.get("EVERYNODE_REQUIRE_NODE") == "1":
            pytest.fail(str(error), pytrace=False)
        if isinstance(error, BinariesMissingError):
            pytest.skip("no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def plane(possible: None) -> Iterator[ControlPlane]:
    """A control plane with the one real node."""
    made = ControlPlane()
    node = RealNode(made, images=IMAGES)
    with asyncio.Runner() as runner:
        runner.run(made.start())
        try:
            runner.run(define(made))
            runner.run(node.start())
            yield made
        finally:
            runner.run(node.stop())
            runner.run(made.stop())


@pytest.fixture
def play(plane: ControlPlane) -> Play:
    """Opens a stage: `async with play() as stage`."""
    return partial(play_on, plane)


async def define(plane: ControlPlane) -> None:
    """Install the Advanced DaemonSet's definition and wait until it is served."""
    time = clock()
    transport = HttpTransport(load_cluster_config(time, kubeconfig=str(plane.kubeconfig)), time)
    client = Client(transport, time)
    name = crd()["metadata"]["name"]
    await client.write(verbs.apply(CRDS, name, crd(), manager="test", force=True), bytes)
    while True:
        try:
            await client.read(verbs.list_page(ADVANCED), bytes)
            break
        except NotServed:
            await time.sleep(0.1)
    await transport.close()


@asynccontextmanager
async def play_on(plane: ControlPlane) -> AsyncIterator[Stage]:
    time = clock()
    transport = HttpTransport(load_cluster_config(time, kubeconfig=str(plane.kubeconfig)), time)
    stage = Stage(transport, time, namespace=f"node-{next(_number)}", real=True)
    try:
        async with stage.playing(nodes=1, simulated=False):
            yield stage
    finally:
        await stage.client.write(verbs.delete(NAMESPACES, stage.namespace), bytes)
        await transport.close()
