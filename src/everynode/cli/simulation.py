"""How fast a simulation is, and telling it something while it runs: only where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import msgspec

from everynode.cli.errors import UserError
from everynode.cluster.machinery.registration import OS_IMAGE
from everynode.kube import verbs
from everynode.kube.client import Client, decode_page
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
    if not 0.001 <= value <= 10_000:  # nor is it so for a value that is no number
        raise click.BadParameter("give a number from 0.001 to 10000")
    return value


async def annotate_node(client: Client, name: str, annotations: dict[str, str | None]) -> None:
    """Set annotations of a simulated node, or take away those that are None."""
    try:
        node = await client.read(verbs.get(NODES, name), decode)
    except NotFound:
        raise UserError(f"there is no node {name}; `kubectl get nodes` lists all") from None
    if not is_simulated(node):
        raise UserError(f"node {name} is a real one; only simulated nodes can be told what to do")
    meta = {"uid": node["metadata"]["uid"], "annotations": annotations}
    await client.write(verbs.patch(NODES, name, {"metadata": meta}, manager=MANAGER), decode)


async def require_simulation(client: Client) -> None:
    """Refuse to speak to a cluster whose nodes are real."""
    page = await client.read(verbs.list_page(NODES, limit=1), decode_page)
    if not all(is_simulated(decode(bytes(item))) for item in page.items):
        raise UserError(
            "this cluster's nodes are real; choose the simulated cluster with --kubeconfig"
        )


def is_simulated(node: Object) -> bool:
    """Whether a node is played by us."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return info.get("osImage") == OS_IMAGE
