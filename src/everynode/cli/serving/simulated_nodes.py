"""Simulated nodes: changes of a running simulation through its API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api.keys import CLI_FIELD_MANAGER
from everynode.components.kubelet.registration import OS_IMAGE
from everynode.errors import UserError, one_line
from everynode.kube import verbs
from everynode.kube.client import UNREADABLE, Client, decode_page
from everynode.kube.errors import NotFound, TooManyRequests
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import NODES, PODS
from everynode.kube.verbs import ListOptions

Object = dict[str, Any]

decode: Final = msgspec.json.Decoder(Object).decode
_NUMBERED: Final = re.compile(r"node-(\d{1,9})", re.ASCII)
_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"
_OS: Final = "kubernetes.io/os"
_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"


async def set_condition(client: Client, name: str, condition: str, status: str) -> None:
    """Write a condition of a simulated node."""
    node = await _read_simulated(client, name)
    written = {"type": condition, "status": status, "reason": "Everynode"}
    body = {
        "metadata": {"uid": node["metadata"]["uid"]},
        "status": {"conditions": [written]},
    }
    patch = verbs.patch(
        NODES,
        name,
        body,
        kind=STRATEGIC_PATCH,
        subresource="status",
        manager=CLI_FIELD_MANAGER,
    )
    await client.write(patch, decode)


async def annotate_node(client: Client, name: str, annotations: dict[str, str | None]) -> None:
    """Set annotations of a simulated node, and remove those that are None."""
    node = await _read_simulated(client, name)
    meta = {"uid": node["metadata"]["uid"], "annotations": annotations}
    await client.write(
        verbs.patch(NODES, name, {"metadata": meta}, manager=CLI_FIELD_MANAGER), decode
    )


async def drain(client: Client, name: str) -> int:
    """Cordon a simulated node and evict all pods on it; return how many there were."""
    node = await _read_simulated(client, name)
    await _patch_node(client, node, {"spec": {"unschedulable": True}})
    return await _evict_pods(client, name)


async def add(client: Client, number: int, labels: Mapping[str, str]) -> list[str]:
    """Create nodes in the zones of those that are there; return their names."""
    await require_simulation(client)
    present = await client.read_all(NODES, decode)
    zones = sorted({_label(node, _ZONE) for node in present} - {""}) or ["zone-a"]
    numbers = [int(found[1]) for node in present if (found := _NUMBERED.fullmatch(_name(node)))]
    first = max(numbers, default=0) + 1
    names = [f"node-{index:04d}" for index in range(first, first + number)]
    for index, name in enumerate(names):
        own = {_HOSTNAME: name, _ZONE: zones[(first + index - 1) % len(zones)], _OS: "linux"}
        body = {"metadata": {"name": name, "labels": {**own, **labels}}}
        await client.write(verbs.create(NODES, body, manager=CLI_FIELD_MANAGER), decode)
    return names


async def remove(client: Client, name: str) -> int:
    """Remove a simulated node as the cluster autoscaler does; return how many pods it had."""
    node = await _read_simulated(client, name)
    taint = {"key": _TO_BE_DELETED, "effect": "NoSchedule"}
    others = [
        each for each in node["spec"].get("taints") or () if each.get("key") != _TO_BE_DELETED
    ]
    await _patch_node(client, node, {"spec": {"taints": [*others, taint]}})
    evicted = await _evict_pods(client, name)
    await client.write(verbs.delete(NODES, name, uid=node["metadata"]["uid"]), decode)
    return evicted


async def _patch_node(client: Client, node: Object, change: Object) -> None:
    meta = {key: node["metadata"][key] for key in ("uid", "resourceVersion")}
    request = verbs.patch(
        NODES, _name(node), {"metadata": meta, **change}, manager=CLI_FIELD_MANAGER
    )
    await client.write(request, decode)


async def _evict_pods(client: Client, node: str) -> int:
    """Evict all pods of a node; raises UserError for the first that a budget protects."""
    pods = await client.read_all(PODS, decode, options=ListOptions(fields=f"spec.nodeName={node}"))
    for pod in pods:
        meta = pod["metadata"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
        }
        request = verbs.create(
            PODS, body, namespace=meta["namespace"], name=meta["name"], subresource="eviction"
        )
        try:
            await client.write(request, decode)
        except NotFound:
            continue  # it has gone by itself
        except TooManyRequests as error:
            raise UserError(
                f"pod {meta['namespace']}/{meta['name']} on node {node} cannot be evicted now: "
                f"{one_line(error.message)}"
            ) from None
    return len(pods)


async def require_simulation(client: Client) -> None:
    """Raise UserError if the cluster has real nodes."""
    page = await client.read(verbs.list_page(NODES, limit=1), decode_page)
    if not all(_is_surely_simulated(bytes(item)) for item in page.items):
        raise UserError(
            "this cluster's nodes are real; choose the simulated cluster with --kubeconfig"
        )


def _is_surely_simulated(body: bytes) -> bool:
    try:
        return is_simulated(decode(body))
    except UNREADABLE:
        return False


async def _read_simulated(client: Client, name: str) -> Object:
    try:
        node = await client.read(verbs.get(NODES, name), decode)
    except NotFound:
        raise UserError(f"there is no node {name}; `kubectl get nodes` lists all") from None
    if not is_simulated(node):
        raise UserError(f"node {name} is a real one; only simulated nodes can be changed")
    return node


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _label(node: Object, key: str) -> str:
    return str((node["metadata"].get("labels") or {}).get(key, ""))


def is_simulated(node: Object) -> bool:
    """Whether a node is one of the simulated kubelets."""
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    return isinstance(info, dict) and info.get("osImage") == OS_IMAGE
