from __future__ import annotations

from everynode.kube.requests import Request
from everynode.kube.transport import InProcessStream, Transport
from tests.support.api_client import MAPS, PODS, Cluster, config_map


async def test_local_transport_is_a_transport(cluster: Cluster) -> None:
    transport: Transport = cluster.transport
    response = await transport.send(Request("GET", MAPS))
    assert response.ok
    await transport.close()


async def test_refused_watch_is_a_stream_with_the_reason(cluster: Cluster) -> None:
    stream = await cluster.transport.open(Request("GET", "/api/v1/foos", (("watch", "1"),)))
    assert stream.status == 404
    assert b"could not find the requested resource" in await stream.read()
    assert await stream.readline() == b""
    await stream.close()


async def test_rest_of_a_watch_can_be_read_in_one_go(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    await cluster.create(MAPS, config_map("b"))
    stream = await cluster.transport.open(
        Request("GET", MAPS, (("watch", "1"), ("timeoutSeconds", "1")))
    )
    assert b'"name":"a"' in await stream.readline()
    assert b'"name":"b"' in await stream.read()


async def test_watch_of_one_object_is_just_that_object(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    stream = await cluster.transport.open(Request("GET", f"{MAPS}/a", (("watch", "1"),)))
    assert b'"kind":"ConfigMap"' in await stream.read()


async def test_a_closed_watch_sends_nothing_more(cluster: Cluster) -> None:
    stream = await cluster.transport.open(Request("GET", PODS, (("watch", "1"),)))
    await stream.close()
    assert await stream.readline() == b""


async def test_events_come_as_the_bytes_that_are_stored(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    stream = await cluster.transport.open(Request("GET", MAPS, (("watch", "1"),)))
    assert isinstance(stream, InProcessStream)
    event = await stream.event()
    (stored,) = [
        each for each in cluster.api.store.collection("configmaps").scan() if each.name == "a"
    ]
    assert event is not None
    assert event[0] == "ADDED"
    assert event[1] is stored.body
    await stream.close()
    assert await stream.event() is None
