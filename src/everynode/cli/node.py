"""`everynode node`: trouble for simulated nodes, and what drains, autoscalers and reboots do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from everynode.api.keys import NODE_LIFECYCLE
from everynode.cli.access.option_order import CommandGroup
from everynode.cli.access.options import connection_options
from everynode.components.annotations import PREFIX

if TYPE_CHECKING:
    from everynode.kube.client import Client


@click.group("node", cls=CommandGroup)
def command() -> None:
    """Stop, slow down, reboot, drain, add or remove simulated nodes.

    \b
    everynode node stop node-0001
    everynode node start node-0001

    Most of it can be done with kubectl, by annotations:

    \b
    kubectl annotate node node-0001 sim.everynode.io/stopped=true
    """


@command.command(short_help="Stop the kubelets of nodes.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def stop(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Stop the kubelet of each NODE; after 40 seconds its Ready condition is Unknown.

    \b
    everynode node stop node-0001 node-0002
    """
    _annotate(nodes, {"stopped": "true"}, "stopped", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let nodes work normally again.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def start(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let each NODE work normally again: not stopped, not slow, not under pressure.

    \b
    everynode node start node-0001
    """
    words = dict.fromkeys(("stopped", "slow", "pressure", "not-ready", "boot", "shutdown"))
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
    """Let everything on NODE take FACTOR times as long; 5 times by default.

    \b
    everynode node slow node-0001 10
    """
    words = {"slow": f"{factor:g}"}
    _annotate(
        (node,), words, f"takes {factor:g} times as long", kubeconfig=kubeconfig, context=context
    )


@command.command(short_help="Let a node run short of memory, disk or process ids.")
@click.argument("node")
@click.argument("resource", type=click.Choice(["memory", "disk", "pid"]), default="memory")
@connection_options
def press(*, node: str, resource: str, kubeconfig: str, context: str) -> None:
    """Let NODE run short of RESOURCE and evict pods; memory by default.

    \b
    everynode node press node-0001 disk
    """
    words = {"pressure": resource}
    _annotate((node,), words, f"under {resource} pressure", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Reboot nodes: all containers on them start again.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def reboot(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Reboot each NODE: it is silent for 20 seconds, then all its containers start again.

    \b
    everynode node reboot node-0001
    """
    from everynode.clock import SystemClock

    words = {"boot": SystemClock().uid()}
    _annotate(nodes, words, "reboots", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Shut nodes down gracefully.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def shutdown(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Shut each NODE down: its pods end and no other is admitted, until `everynode node start`.

    \b
    everynode node shutdown node-0001
    """
    _annotate(nodes, {"shutdown": "true"}, "shuts down", kubeconfig=kubeconfig, context=context)


@command.command(short_help="Set or clear a node lifecycle condition.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@click.option(
    "--condition",
    type=click.Choice(NODE_LIFECYCLE),
    default="MaintenanceInProgress",
    help="The condition to set.",
)
@click.option("--clear", is_flag=True, help="Make it False again.")
@connection_options
def maintenance(
    *, nodes: tuple[str, ...], condition: str, clear: bool, kubeconfig: str, context: str
) -> None:
    """Make a lifecycle condition of each NODE True; MaintenanceInProgress by default.

    \b
    everynode node maintenance node-0001
    everynode node maintenance node-0001 --clear
    """
    status = "False" if clear else "True"

    async def set_all(client: Client) -> None:
        from everynode.cli.serving import simulated_nodes  # late, as --help needs none of it

        for name in nodes:
            await simulated_nodes.set_condition(client, name, condition, status)
            click.echo(f"node/{name} {condition}={status}")

    _run(set_all, kubeconfig=kubeconfig, context=context)


@command.command(short_help="Cordon nodes and evict every pod on them.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def drain(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Cordon each NODE and evict every pod on it, those of DaemonSets too.

    PodDisruptionBudgets are respected. `kubectl uncordon NODE` ends it.

    \b
    everynode node drain node-0001
    """

    async def drain_all(client: Client) -> None:
        from everynode.cli.serving import simulated_nodes  # late, as --help needs none of it
        from everynode.cli.terminal.text import format_count

        for name in nodes:
            evicted = await simulated_nodes.drain(client, name)
            click.echo(f"node/{name} drained: {format_count(evicted, 'pod')} evicted")

    _run(drain_all, kubeconfig=kubeconfig, context=context)


@command.command(short_help="Let nodes join, as an autoscaler does.")
@click.argument("number", metavar="[N]", type=click.IntRange(1, 1000), default=1)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label for them.")
@connection_options
def add(*, number: int, labels: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let N nodes join, one by default; they are named after those that are there.

    \b
    everynode node add 3 --label disk=ssd
    """
    pairs = [label.partition("=") for label in labels]
    if not all(key and equals for key, equals, _ in pairs):
        raise click.UsageError("--label: give KEY=VALUE")

    async def add_all(client: Client) -> None:
        from everynode.cli.serving import simulated_nodes  # late, as --help needs none of it

        given = {key: value for key, _, value in pairs}
        for name in await simulated_nodes.add(client, number, given):
            click.echo(f"node/{name} created")

    _run(add_all, kubeconfig=kubeconfig, context=context)


@command.command(short_help="Remove nodes, as an autoscaler does.")
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@connection_options
def remove(*, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Remove each NODE as the cluster autoscaler does: taint it, evict its pods, delete it.

    \b
    everynode node remove node-0003
    """

    async def remove_all(client: Client) -> None:
        from everynode.cli.serving import simulated_nodes  # late, as --help needs none of it
        from everynode.cli.terminal.text import format_count

        for name in nodes:
            evicted = await simulated_nodes.remove(client, name)
            click.echo(f"node/{name} deleted: {format_count(evicted, 'pod')} evicted")

    _run(remove_all, kubeconfig=kubeconfig, context=context)


def _annotate(
    nodes: tuple[str, ...],
    words: dict[str, str] | dict[str, str | None],
    done: str,
    *,
    kubeconfig: str,
    context: str,
) -> None:
    annotations = {f"{PREFIX}{key}": value for key, value in words.items()}

    async def annotate_all(client: Client) -> None:
        from everynode.cli.serving import simulated_nodes  # late, as --help needs none of it

        for name in nodes:
            await simulated_nodes.annotate_node(client, name, annotations)
            click.echo(f"node/{name} {done}")

    _run(annotate_all, kubeconfig=kubeconfig, context=context)


def _run(change: Callable[[Client], Awaitable[None]], *, kubeconfig: str, context: str) -> None:
    import asyncio  # late, as all that --help does not need

    from everynode.cli.access.connection import connect
    from everynode.clock import SystemClock

    async def connected() -> None:
        async with connect(SystemClock(), kubeconfig=kubeconfig, context=context) as client:
            await change(client)

    asyncio.run(connected())
