"""`everynode node`: stop, start, slow down simulated nodes, or put them under pressure."""

from __future__ import annotations

import asyncio

import click

from everynode.cli.access.connection import connect
from everynode.cli.access.options import connection_options
from everynode.cli.serving.simulated_nodes import annotate_node
from everynode.clock import SystemClock
from everynode.components.objects import ANNOTATION_PREFIX


@click.group("node")
def command() -> None:
    """Stop, start or slow down a simulated node.

    The same can be done with kubectl, by annotations:

    \b
    kubectl annotate node node-0001 sim.everynode.io/stopped=true
    """


@command.command(short_help="Stop the kubelets of nodes.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def stop(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Stop the kubelet of each NODE; after 40 seconds its Ready condition is Unknown."""
    _annotate(nodes, {"stopped": "true"}, "stopped", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let nodes work normally again.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def start(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let each NODE work normally again: not stopped, not slow, not under pressure."""
    words = dict.fromkeys(("stopped", "slow", "pressure", "not-ready"))
    _annotate(nodes, words, "started", kubeconfig=kubeconfig, context=context)


def _check_factor(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0.001 <= value <= 100_000:  # also refuses nan
        raise click.BadParameter("give a number from 0.001 to 100000")
    return value


@command.command(short_help="Let everything on a node take longer.")
@click.argument("node")
@click.argument("factor", metavar="[FACTOR]", type=float, callback=_check_factor, default=5.0)
@connection_options
def slow(*, node: str, factor: float, kubeconfig: str, context: str) -> None:
    """Let everything on NODE take FACTOR times as long; 5 times by default."""
    words = {"slow": f"{factor:g}"}
    _annotate((node,), words, f"slower by {factor:g}", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let a node run short of memory, disk or process ids.")
@click.argument("node")
@click.argument("resource", type=click.Choice(["memory", "disk", "pid"]), default="memory")
@connection_options
def press(*, node: str, resource: str, kubeconfig: str, context: str) -> None:
    """Let NODE run short of RESOURCE and evict pods; memory by default."""
    words = {"pressure": resource}
    _annotate((node,), words, f"under {resource} pressure", kubeconfig=kubeconfig, context=context)


def _annotate(
    nodes: tuple[str, ...],
    words: dict[str, str] | dict[str, str | None],
    done: str,
    *,
    kubeconfig: str,
    context: str,
) -> None:
    annotations = {f"{ANNOTATION_PREFIX}{key}": value for key, value in words.items()}

    async def annotate_all() -> None:
        async with connect(SystemClock(), kubeconfig=kubeconfig, context=context) as client:
            for name in nodes:
                await annotate_node(client, name, annotations)
                click.echo(f"node/{name} {done}")

    asyncio.run(annotate_all())
