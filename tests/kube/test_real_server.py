"""The client against a real API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from everynode.api.objects import Lease, Node
from everynode.clock import SystemClock
from everynode.controller.leader import Election
from everynode.kube import errors, verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from everynode.kube.requests import JSON_PATCH, Request
from everynode.kube.resources import ADVANCED, LEASES, NODES, PODS
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.support import kubernetes

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="module")]
CONTAINERS = [{"name": "c", "image": "i"}]
OTHER_UID = "00000000-0000-0000-0000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def transport() -> AsyncIterator[HttpTransport]:
    kubernetes.programs()
    clock = SystemClock()
    async with ControlPlane(ControlPlaneOptions(scheduler=False, controllers=None)) as plane:
        transport = HttpTransport(
            load_cluster_config(clock, kubeconfig=str(plane.kubeconfig), environ={}), clock
        )
        yield transport
        await transport.close()


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("request_", "meaning"),
    [
        (verbs.get(NODES, "missing"), errors.NotFound),
        (verbs.get(ADVANCED, "d", namespace="default"), errors.NotServed),
        (verbs.list_page(ADVANCED), errors.NotServed),
        (verbs.create(NODES, node("here")), errors.AlreadyExists),
        (verbs.delete(NODES, "here", uid=OTHER_UID), errors.Conflict),
        (verbs.delete(NODES, "here", version="1"), errors.Conflict),
        (verbs.patch(NODES, "here", {"metadata": {"uid": OTHER_UID}}), errors.Conflict),
        (verbs.patch(NODES, "here", {"metadata": {"resourceVersion": "1"}}), errors.Conflict),
        (
            verbs.patch(
                NODES,
                "here",
                [{"op": "test", "path": "/metadata/name", "value": "x"}],
                kind=JSON_PATCH,
            ),
            errors.Invalid,
        ),
        (verbs.create(PODS, pod("p"), namespace="default"), errors.Invalid),
        (verbs.create(PODS, pod("p", containers=CONTAINERS), namespace="x"), errors.NotFound),
        (verbs.create(PODS, b"{", namespace="default"), errors.Invalid),
    ],
)
async def test_refusals_of_a_real_server_are_understood(
    transport: HttpTransport, request_: Request, meaning: type[errors.KubeError]
) -> None:
    client = Client(transport, SystemClock())
    with contextlib.suppress(errors.AlreadyExists):
        await client.write(verbs.create(NODES, node("here")), bytes)
    with pytest.raises(meaning) as caught:
        await (client.write if verbs.is_write(request_) else client.read)(request_, bytes)
    assert type(caught.value) is meaning


async def test_a_cache_follows_a_real_server(transport: HttpTransport) -> None:
    clock = SystemClock()
    client, cache = Client(transport, clock), Cache[Node](quiet=True)
    changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    cache.subscribe(
        lambda before, after: changes.put_nowait(
            (before.name if before else "", after.name if after else "")
        )
    )
    watcher = Watcher(transport, clock, resource=NODES, decode=Decoder(Node).one, consumer=cache)
    task = asyncio.ensure_future(watcher.run())
    await watcher.settled()
    while not changes.empty():
        changes.get_nowait()
    made = await client.write(verbs.create(NODES, node("new")), Decoder(Node).one)
    assert await changes.get() == ("", "new")
    annotate = {"metadata": {"annotations": {"heartbeat": "1"}}}
    await client.write(verbs.patch(NODES, "new", annotate), bytes)  # nothing that we read
    await client.write(verbs.delete(NODES, "new", uid=made.metadata.uid), bytes)
    assert await changes.get() == ("new", "")
    before = cache.version
    await watcher.refresh()
    assert cache.version >= before
    task.cancel()
    await asyncio.wait([task])


async def test_a_lease_is_taken_renewed_and_released(transport: HttpTransport) -> None:
    clock = SystemClock()
    client = Client(transport, clock)
    get = verbs.get(LEASES, "everynode", namespace="kube-system")
    elector = Election(transport, clock, identity=f"me_{clock.uid()}", namespace="kube-system")
    task = asyncio.ensure_future(elector.run())
    await elector.elected()
    first = await client.read(get, Decoder(Lease).one)
    assert first.spec.holder_identity == elector.holder
    while (await client.read(get, Decoder(Lease).one)) == first:
        await clock.sleep(0.1)
    await elector.resign(client.settle)
    assert (await client.read(get, Decoder(Lease).one)).spec.holder_identity == ""
    await task
