"""Simulated nodes: the --speed option, and changes of a running simulation through its API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import msgspec

from everynode.components.kubelet.registration import OS_IMAGE
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import UNREADABLE, Client, decode_page
from everynode.kube.errors import NotFound
from everynode.kube.resources import NODES

Object = dict[str, Any]

decode: Final = msgspec.json.Decoder(Object).decode
MANAGER: Final = "everynode-cli"

Function = TypeVar("Function", bound=Callable[..., Any])


def speed_option(default: float) -> Callable[[Function], Function]:
    """Give a command --speed."""
    return click.option(
        "--speed",
        type=float,
        metavar="X",
        default=default,
        show_default=True,
        callback=_check_speed,
        help="How many times faster than in reality pods start, stop and fail.",
    )


def _check_speed(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0.001 <= value <= 10_000:  # also refuses nan
        raise click.BadParameter("give a number from 0.001 to 10000")
    return value


async def annotate_node(client: Client, name: str, annotations: dict[str, str | None]) -> None:
    """Set annotations of a simulated node, and remove those that are None."""
    try:
        node = await client.read(verbs.get(NODES, name), decode)
    except NotFound:
        raise UserError(f"there is no node {name}; `kubectl get nodes` lists all") from None
    if not is_simulated(node):
        raise UserError(f"node {name} is a real one; only simulated nodes can be changed")
    meta = {"uid": node["metadata"]["uid"], "annotations": annotations}
    await client.write(verbs.patch(NODES, name, {"metadata": meta}, manager=MANAGER), decode)


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


def is_simulated(node: Object) -> bool:
    """Whether a node is one of the simulated kubelets."""
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    return isinstance(info, dict) and info.get("osImage") == OS_IMAGE
