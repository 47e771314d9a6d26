"""What a probe concludes, on an API server where the test plays the controller."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from everynode.apiserver.server import Server
from everynode.cli.migration.probe import ControllerProbe
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import DAEMONSETS, PODS, REVISIONS, Resource
from tests.support.stage import clock, daemonset

Object = dict[str, Any]
NAME = "agent-migration-probe"


class Stagehand:
    """Does by hand what the native controller would do."""

    def __init__(self) -> None:
        self.clock = clock()
        self.client = Client(Server(clock=self.clock).transport, self.clock)

    def probe(self) -> ControllerProbe:
        manifest = daemonset(api_version="apps/v1")
        return ControllerProbe(
            self.client, self.clock, DAEMONSETS, namespace="default", manifest=manifest
        )

    async def find(self, resource: Resource, other_than: str = "") -> Object:
        """Wait until there is one, with another uid than this."""
        while True:
            for each in await self.client.read_all(resource, _decode):
                if each["metadata"]["uid"] != other_than:
                    return each
            await asyncio.sleep(0)

    async def observe(self) -> Object:
        """Write a status for the probe."""
        probe = await self.find(DAEMONSETS)
        status = {"status": {"observedGeneration": 1}}
        request = verbs.patch(DAEMONSETS, NAME, status, namespace="default", subresource="status")
        await self.client.write(request, bytes)
        return probe

    async def adopt(self, resource: Resource, probe: Object) -> None:
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": NAME,
            "uid": probe["metadata"]["uid"],
            "controller": True,
        }
        body = {"metadata": {"ownerReferences": [owner]}}
        await self.client.write(verbs.patch(resource, NAME, body, namespace="default"), bytes)

    async def left(self) -> list[str]:
        """Return what the probe has not deleted."""
        found = [
            await self.client.read_all(each, _decode) for each in (DAEMONSETS, PODS, REVISIONS)
        ]
        return [each["metadata"]["uid"] for listed in found for each in listed]


def _decode(body: bytes) -> Object:
    decoded: Object = json.loads(body)
    return decoded


async def test_a_controller_that_writes_the_status_answers() -> None:
    stagehand = Stagehand()
    asking = asyncio.create_task(stagehand.probe().controller_answers())
    await stagehand.observe()
    assert await asking
    assert await stagehand.left() == []


async def test_a_controller_sees_the_pods_when_it_has_adopted_one_created_later() -> None:
    stagehand = Stagehand()
    asking = asyncio.create_task(stagehand.probe().controller_sees_pods())
    probe = await stagehand.observe()
    await stagehand.find(PODS)
    assert not asking.done()  # the status alone says nothing about the watch of pods
    await stagehand.adopt(PODS, probe)
    await stagehand.find(REVISIONS)
    assert not asking.done()
    await stagehand.adopt(REVISIONS, probe)
    assert await asking
    assert await stagehand.left() == []


async def test_what_an_interrupted_run_has_left_proves_nothing() -> None:
    stagehand = Stagehand()
    interrupted = asyncio.create_task(stagehand.probe().controller_sees_pods())
    first = await stagehand.find(DAEMONSETS)
    interrupted.cancel()
    await asyncio.wait([interrupted])
    await stagehand.client.write(
        verbs.create(DAEMONSETS, _left_over(first), namespace="default"), bytes
    )
    stale = await stagehand.observe()
    asking = asyncio.create_task(stagehand.probe().controller_answers())
    await stagehand.find(DAEMONSETS, other_than=stale["metadata"]["uid"])
    assert not asking.done()
    await stagehand.observe()
    assert await asking


def _left_over(probe: Object) -> Object:
    metadata = {key: probe["metadata"][key] for key in ("name", "labels")}
    kind = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    return kind | {"metadata": metadata, "spec": probe["spec"]}


async def test_a_pod_that_another_program_deletes_is_no_answer() -> None:
    stagehand = Stagehand()
    asking = asyncio.create_task(stagehand.probe().controller_sees_pods())
    await stagehand.observe()
    await stagehand.find(PODS)
    await stagehand.client.write(verbs.delete(PODS, NAME, namespace="default"), bytes)
    with pytest.raises(UserError, match="was deleted by another program; run this command again"):
        await asking
    assert await stagehand.left() == []
