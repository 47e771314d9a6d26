"""`everynode node`: stop, start and slow down simulated nodes while they run."""

from __future__ import annotations

import asyncio

import click

from everynode.cli.connection import connect, connection_options
from everynode.cli.simulation import annotate_node
from everynode.clock import SystemClock
from everynode.cluster.machinery.objects import PREFIX


@click.group("node")
def command() -> None:
    """Stop, start or slow down a simulated node.

    The same can be done with kubectl, by annotations:

    \b
    kubectl annotate node node-0001 sim.everynode.io/stopped=true
    """


@command.command(short_help="Let kubelets fall silent.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def stop(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let the kubelet of each NODE fall silent; after 40 seconds its state is Unknown."""
    _tell(nodes, {"stopped": "true"}, "stopped", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let nodes be well again.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def start(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let each NODE be as it was: neither stopped nor slow nor under pressure."""
    words = dict.fromkeys(("stopped", "slow", "pressure", "not-ready"))
    _tell(nodes, words, "started", kubeconfig=kubeconfig, context=context)


def _check_factor(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0.001 <= value <= 100_000:  # nor is it so for a value that is no number
        raise click.BadParameter("give a number from 0.001 to 100000")
    return value


@command.command(short_help="Let everything on a node take longer.")
@click.argument("node")
@click.argument("factor", metavar="[FACTOR]", type=float, callback=_check_factor, default=5.0)
@connection_options
def slow(*, node: str, factor: float, kubeconfig: str, context: str) -> None:
    """Let everything on NODE take FACTOR times as long; 5 times if nothing is said."""
    words = {"slow": f"{factor:g}"}
    _tell((node,), words, f"slower by {factor:g}", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let a node run short of memory, disk or process ids.")
@click.argument("node")
@click.argument("resource", type=click.Choice(["memory", "disk", "pid"]), default="memory")
@connection_options
def press(*, node: str, resource: str, kubeconfig: str, context: str) -> None:
    """Let NODE run short of RESOURCE and evict pods; memory if nothing is said."""
    words = {"pressure": resource}
    _tell((node,), words, f"under {resource} pressure", kubeconfig=kubeconfig, context=context)


def _tell(
    nodes: tuple[str, ...],
    words: dict[str, str] | dict[str, str | None],
    done: str,
    *,
    kubeconfig: str,
    context: str,
) -> None:
    annotations = {f"{PREFIX}{key}": value for key, value in words.items()}

    async def tell() -> None:
        async with connect(SystemClock(), kubeconfig=kubeconfig, context=context) as client:
            for name in nodes:
                await annotate_node(client, name, annotations)
                click.echo(f"node/{name} {done}")

    asyncio.run(tell())
