from __future__ import annotations

import json
from typing import Any

from everynode.api import keys
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.annotations import BEHAVIOUR
from everynode.forecast.preinstalled_pods import PreinstalledPods
from everynode.forecast.rollout_tracker import RolloutTracker
from everynode.forecast.transport import ForecastTransport
from everynode.kube import verbs
from everynode.kube.requests import Request, Response
from everynode.kube.resources import ADVANCED, EVENTS, NODES, PODS
from everynode.kube.transport import Stream
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run


class Listener(LocalTransport):
    """Keeps what comes through, and answers nothing of interest."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.heard: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.heard.append(request)
        return Response(200)

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nothing is watched here")


def pod(node: str, hash: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    labels = {keys.REVISION_HASH: hash}
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"affinity": affinity}}


def carried(
    *requests: Request, failing: frozenset[str] = frozenset()
) -> tuple[ForecastTransport, Listener]:
    loop = SimLoop()
    clock = SimClock(loop, 1)
    api = Api(clock=clock)
    listener = Listener(api)
    preinstalled = PreinstalledPods(api.store, listener, clock, lambda _: None)
    transport = ForecastTransport(listener, RolloutTracker(api.store, loop, clock), preinstalled)
    transport.failing = failing

    async def carry() -> None:
        await transport.send(requests[0])
        transport.begin()
        for request in requests:
            await transport.send(request)

    run(carry(), loop=loop)
    return transport, listener


def test_writes_are_counted_by_kind_from_the_beginning_on() -> None:
    requests = [
        verbs.create(PODS, pod("n1", "new"), namespace="default"),
        verbs.get(NODES, "n1"),
        verbs.delete(PODS, "p", namespace="default"),
        verbs.patch(ADVANCED, "a", {}, namespace="default", subresource="status"),
        verbs.create(EVENTS, {}, namespace="default"),
        verbs.patch(ADVANCED, "a", {}, namespace="default"),
    ]
    transport, listener = carried(*requests)
    assert transport.writes == {"pods": 2, "status": 1, "events": 1, "others": 1}
    assert len(listener.heard) == len(requests) + 1


def behaviours(listener: Listener) -> list[str]:
    bodies = [json.loads(request.body) for request in listener.heard]
    return [body["metadata"].get("annotations", {}).get(BEHAVIOUR, "") for body in bodies]


def test_new_pods_on_unlucky_nodes_are_told_to_fail() -> None:
    requests = [verbs.create(PODS, pod(node, "new"), namespace="default") for node in ("n1", "n2")]
    _, listener = carried(*requests, failing=frozenset({"n2"}))
    # The first request is also sent before the update begins.
    assert behaviours(listener) == ["", "", "fail=probe"]


def test_nothing_else_is_changed_on_the_way() -> None:
    request = verbs.create(PODS, pod("n2", "new"), namespace="default")
    _, listener = carried(request)
    assert listener.heard[-1] == request
