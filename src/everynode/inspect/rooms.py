"""Rooms: which nodes have no room for a pod of the target, as a reader can tell (R4).

The controller names the first few of them in its condition. Where the reader may list pods, what
is missing is worked out from the pods of each node.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from everynode.controller.node_resources import (
    NodeResources,
    TargetPod,
    build_room,
    decode_allocatable,
    decode_pods,
    node_request,
    pods_request,
)
from everynode.decide.node import reasons
from everynode.decide.node.room import Room, template_requests
from everynode.inspect.evaluate import Evaluation, evaluate
from everynode.inspect.reported_rooms import ReportedRooms
from everynode.inspect.snapshot import Snapshot
from everynode.kube.client import Client
from everynode.kube.errors import KubeError

_MAX_NODES: Final = 50  # that are read for one command
_CONCURRENT_REQUESTS: Final = 8


async def evaluate_with_rooms(client: Client, snapshot: Snapshot, now: float) -> Evaluation:
    """Return how the rollout stands, with what is missing on nodes that have no room."""
    evaluation = evaluate(snapshot, now)
    if not ReportedRooms(snapshot.ds).some:
        return evaluation
    rooms = await _read_rooms(client, evaluation, now)
    return evaluate(msgspec.structs.replace(snapshot, rooms=rooms), now)


async def _read_rooms(client: Client, evaluation: Evaluation, now: float) -> dict[str, Room]:
    concerned = [
        name
        for name, assessment in sorted(evaluation.assessments.items())
        if assessment.reason.code == reasons.INSUFFICIENT_RESOURCES
        or any(step.check_room for step in assessment.steps)
    ]
    slots = asyncio.Semaphore(_CONCURRENT_REQUESTS)

    async def read(node: str) -> Room | None:
        async with slots:
            return await _read_room(client, evaluation, node, now)

    nodes = concerned[:_MAX_NODES]
    found = zip(nodes, await asyncio.gather(*map(read, nodes)), strict=True)
    return {node: room for node, room in found if room is not None}


async def _read_room(client: Client, evaluation: Evaluation, node: str, now: float) -> Room | None:
    """Return the room of a node; None where the reader lacks a right, or the server an answer."""
    plan = evaluation.plan
    try:
        allocatable = await client.read(node_request(node, 0), decode_allocatable)
        pods = await client.read(pods_request(node, 0), decode_pods)
    except KubeError:
        return None
    return build_room(
        NodeResources(allocatable, pods),
        TargetPod(template_requests(plan.target.template)),
        plan.ds.uid,
        revision=plan.target_hash,
        now=now,
    )
