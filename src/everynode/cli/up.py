"""`everynode up`: a cluster on this machine that kubectl talks to."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, Final, NoReturn

import click

from everynode.cli import kubeconfig as kubeconfigs
from everynode.cli import process
from everynode.cli.errors import UserError, first_to_mend
from everynode.cli.simulation import speed_option
from everynode.cli.site import Site
from everynode.clock import Clock, SystemClock
from everynode.cluster.https import PortError
from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.registration import MOST_NODES
from everynode.cluster.machinery.run import Machinery
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.cluster.server import Server
from everynode.cluster.sqlite import DataError
from everynode.controller import log
from everynode.controller.run import Controller
from everynode.controller.run import Options as ControllerOptions
from everynode.kube.transport import Transport

DEFAULT_KUBECONFIG: Final = "everynode.kubeconfig"
MOST_ZONES: Final = 26
EXAMPLE: Final = Path("examples/01-first-daemonset.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was typed."""

    nodes: int
    port: int
    kubeconfig: Path
    data: Path | None
    speed: float
    zones: int
    kubernetes: bool
    controller: bool


def _folder(ctx: click.Context, param: click.Parameter, value: str | None) -> Path | None:
    if value == "":  # a variable of a script that is not set; a path would be the current folder
        raise click.BadParameter("give the name of a folder; it is empty")
    return None if value is None else Path(value)


@click.command("up")
@click.option(
    "--nodes",
    type=click.IntRange(0, MOST_NODES),
    metavar="N",
    default=3,
    show_default=True,
    help="How many nodes the cluster has at the start.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    default=0,
    help="Where the API server listens on 127.0.0.1; any free port by default.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_KUBECONFIG,
    show_default=True,
    help="Where to write how to reach it; other contexts in the file stay.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    callback=_folder,
    default=None,
    help="A folder that keeps the cluster until the next time; without it, it is forgotten.",
)
@speed_option(1.0)
@click.option(
    "--zones",
    type=click.IntRange(1, MOST_ZONES),
    metavar="N",
    default=3,
    show_default=True,
    help="In how many zones the nodes are.",
)
@click.option(
    "--kubernetes",
    is_flag=True,
    help="Behind the nodes run the real kube-apiserver, etcd, kube-scheduler and "
    "kube-controller-manager (make kubernetes).",
)
@click.option(
    "--no-controller",
    "controller",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Only the cluster: nobody serves DaemonSets until you start `everynode run`, or another "
    "controller, yourself.",
)
@click.option(
    "--log-level",
    type=click.Choice(log.LEVELS),
    default="warning",
    show_default=True,
    help="How much is said while it runs.",
)
def command(*, log_level: str, **wishes: Any) -> None:
    """Start a cluster of simulated nodes for kubectl, with Everynode's controller in it.

    It needs neither containers nor privileges, and ends with Ctrl-C. While it runs, stop or slow
    down nodes with `everynode node`, and break images with `everynode image`.

    \b
    A cluster to play with:     everynode up --nodes 20
    One that you can keep:      everynode up --data ~/everynode
    A minute in three seconds:  everynode up --speed 20
    """
    clock = SystemClock()
    log.set_up(sys.stderr, clock, style="human", level=log_level)
    process.run(_up(clock, Wishes(**wishes)))


async def _up(clock: Clock, wishes: Wishes) -> None:
    kubeconfigs.check(wishes.kubeconfig)
    async with _start(clock, wishes) as site:
        current = kubeconfigs.add(wishes.kubeconfig, site.kubeconfig)
        machinery = Machinery(site.transport, clock, site.machinery)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_guard(site))
                group.create_task(machinery.run())
                if wishes.controller:
                    group.create_task(_run_controller(site.transport, clock))
                await machinery.ready()
                click.echo(f"{wishes.nodes} nodes at {site.url}; Ctrl-C stops them")
                click.echo(_what_next(wishes, current=current))
                click.echo("ready")
        except BaseExceptionGroup as errors:
            raise first_to_mend(errors) from None


async def _guard(site: Site) -> None:
    await site.broken()


async def _run_controller(transport: Transport, clock: Clock) -> None:
    """Serve both kinds of DaemonSets, as long as the cluster runs."""
    await Controller(transport, clock, ControllerOptions(native=True)).run()


def _what_next(wishes: Wishes, *, current: bool) -> str:
    context = "" if current else " --context everynode"
    kubectl = f"kubectl{context}"
    path = shlex.quote(str(wishes.kubeconfig.absolute()))
    everynode = _own_name()
    steps = [f"export KUBECONFIG={path}", f"{kubectl} get nodes"]
    if not wishes.controller:
        steps += [f"{everynode} install{context}", f"{everynode} run --native{context}"]
    if EXAMPLE.is_file():
        steps.append(f"{kubectl} apply -f {EXAMPLE}")
    steps += [f"{kubectl} get pods -o wide -w", f"{everynode} node stop node-0001{context}"]
    return f"try: {'; '.join(steps)}"


def _own_name() -> str:
    """What to type for us: our place, where the shell does not find us by name."""
    beside = Path(sys.executable).with_name("everynode")
    return shlex.quote(str(beside)) if not which("everynode") and beside.exists() else "everynode"


def _start(clock: Clock, wishes: Wishes) -> AbstractAsyncContextManager[Site]:
    zones = tuple(f"zone-{chr(ord('a') + index)}" for index in range(wishes.zones))
    behaviour = Behaviour(speed=wishes.speed)
    machinery = MachineryOptions(nodes=wishes.nodes, zones=zones, behaviour=behaviour)
    if wishes.kubernetes:
        # Imported late: it costs a fifth of a second, and most people never need it.
        from everynode.cli import realcluster

        return realcluster.start(clock, port=wishes.port, data=wishes.data, machinery=machinery)
    return _start_embedded(clock, wishes, machinery)


@asynccontextmanager
async def _start_embedded(
    clock: Clock, wishes: Wishes, machinery: MachineryOptions
) -> AsyncIterator[Site]:
    try:
        server = Server(clock=clock, data=wishes.data)
    except DataError as error:
        raise _data_trouble(error) from None
    try:
        await server.start(port=wishes.port)
        yield Site(
            server.url,
            server.transport,
            server.kubeconfig(),
            machinery,
            partial(_broken, server),
        )
    except PortError as error:
        raise UserError(f"{error} with --port") from None
    finally:
        await server.stop()


async def _broken(server: Server) -> NoReturn:
    try:
        await server.broken()
    except DataError as error:
        raise _data_trouble(error) from None


def _data_trouble(error: DataError) -> UserError:
    said = str(error)
    return UserError(said if "choose" in said else f"{said}; choose another folder with --data")
