from __future__ import annotations

from typing import Any

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.clock import SystemClock
from everynode.inspect.pod_trouble import read_errors, read_events
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import EVENTS, PODS
from tests.support.transports import Permitted


async def cluster() -> tuple[LocalTransport, Client]:
    """A cluster with one pod whose container crashed."""
    clock = SystemClock()
    transport = LocalTransport(Api(clock=clock))
    client = Client(transport, clock)
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await client.write(verbs.create(PODS, body, namespace="default"), bytes)
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s\nrestarting"}
    ended = {"exitCode": 3, "reason": "Error", "message": "no config"}
    container: dict[str, Any] = {
        "name": "c",
        "state": {"waiting": waiting},
        "lastState": {"terminated": ended},
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 1,
    }
    status = {"status": {"containerStatuses": [container]}}
    patch = verbs.patch(
        PODS, "p", status, kind=STRATEGIC_PATCH, namespace="default", subresource="status"
    )
    await client.write(patch, bytes)
    return transport, client


async def test_errors_tell_why_it_waits_and_how_it_ended() -> None:
    transport, client = await cluster()
    assert await read_errors(client, "default", "p") == [
        "container c: CrashLoopBackOff: back-off 10s restarting",
        "container c ended with exit code 3 (Error): no config",
    ]
    assert await read_errors(client, "default", "gone") == []
    blind = Client(Permitted(transport, set()), SystemClock())
    assert "you lack the permission to get pods" in (await read_errors(blind, "default", "p"))[0]


async def test_events_are_the_newest_first() -> None:
    transport, client = await cluster()
    for second in range(7):
        event = {
            "metadata": {"name": f"e{second}"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"},
            "reason": f"R{second}",
            "type": "Warning",
            "message": "text",
            "lastTimestamp": f"2026-01-01T00:00:0{second}Z",
        }
        await client.write(verbs.create(EVENTS, event, namespace="default"), bytes)
    found = await read_events(client, "default", "u")
    assert not isinstance(found, str)
    assert [each.reason for each in found] == ["R6", "R5", "R4", "R3", "R2"]
    blind = Client(Permitted(transport, set()), SystemClock())
    assert str(await read_events(blind, "default", "u")).startswith("list events")
