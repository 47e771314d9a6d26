"""Running a cluster of simulated nodes until Ctrl-C."""

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
from typing import Final, NoReturn

import click

from everynode import log
from everynode.apiserver.server import Server
from everynode.apiserver.storage.sqlite import DataError
from everynode.apiserver.transport.https import PortError
from everynode.cli.access import kubeconfig as kubeconfigs
from everynode.cli.serving import event_loop
from everynode.cli.serving.running_server import RunningServer
from everynode.clock import Clock, SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.errors import UserError, first_user_error, replace_control_characters
from everynode.kube.client import Client

EXAMPLE: Final = Path("examples/01-first-daemonset.yaml")
FIRST_PAGE: Final = Path("docs/first-daemonset.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `everynode up`."""

    nodes: int
    port: int
    kubeconfig: Path
    data: Path | None
    speed: float
    zones: int
    kubernetes: bool
    controller: bool
    dashboard_port: int
    dashboard: bool
    allow_actions: bool


def run_cluster(options: UpOptions, log_level: str) -> None:
    """Run the cluster until Ctrl-C or SIGTERM; raises UserError."""
    clock = SystemClock()
    log.set_up(sys.stderr, clock, style="human", level=log_level)
    event_loop.run(_up(clock, options))


async def _up(clock: Clock, options: UpOptions) -> None:
    kubeconfigs.check_writable(options.kubeconfig)
    removed = ""
    try:
        async with _start(clock, options) as server:
            replaced = kubeconfigs.replaced_server(options.kubeconfig, server.kubeconfig)
            if replaced not in ("", server.url):
                click.echo(_what_was_replaced(options, replaced), err=True)
            current = kubeconfigs.add_cluster(options.kubeconfig, server.kubeconfig)
            try:
                await _serve(server, clock, options, current=current)
            finally:
                removed = kubeconfigs.remove_cluster(options.kubeconfig, server.kubeconfig)
    except asyncio.CancelledError:  # SIGTERM or Ctrl-C
        click.echo(_what_was_removed(options, removed))
        raise


async def _serve(server: RunningServer, clock: Clock, options: UpOptions, *, current: bool) -> None:
    """Run everything beside the API server until cancelled; say how to use it when it is ready."""
    components = Components(server.transport, clock, server.components)
    controller = None
    if options.controller:  # of both kinds of DaemonSets
        controller = Controller(server.transport, clock, ControllerOptions(native=True))
    page_of = _dashboard(server, clock, options, controller)
    try:
        async with page_of as page, asyncio.TaskGroup() as group:
            group.create_task(_raise_when_broken(server))
            group.create_task(components.run())
            if controller is not None:
                group.create_task(controller.run())
            await components.ready()
            click.echo(f"{options.nodes} nodes at {server.url}; Ctrl-C stops them")
            if page:
                click.echo(f"dashboard at {page}")
            click.echo(_what_next(options, current=current))
            click.echo("ready")
    except BaseExceptionGroup as errors:
        raise first_user_error(errors) from None


@asynccontextmanager
async def _dashboard(
    server: RunningServer, clock: Clock, options: UpOptions, controller: Controller | None
) -> AsyncIterator[str]:
    """Serve the page of all rollouts inside a `with` block; yields its address, "" without it.

    It shows what the controller watches, if there is one.
    """
    if not options.dashboard:
        yield ""
        return
    from everynode.dashboard.server import Dashboard, serve  # late, as --no-dashboard needs none
    from everynode.inspect.shared_caches import SharedCaches

    client = Client(server.transport, clock)
    token = clock.uid() if options.allow_actions else ""
    name = f"everynode up, {server.url}"
    shared = SharedCaches(controller.informers, controller.watchers) if controller else None
    dashboard = Dashboard(client, clock, cluster=name, token=token, shared=shared)
    async with serve(dashboard, options.dashboard_port, option="--dashboard-port") as port:
        yield f"http://127.0.0.1:{port}/{f'; token for actions: {token}' if token else ''}"


async def _raise_when_broken(server: RunningServer) -> None:
    await server.broken()


def _what_next(options: UpOptions, *, current: bool) -> str:
    context = "" if current else " --context everynode"
    kubectl = f"kubectl{context}"
    path = shlex.quote(str(options.kubeconfig.absolute()))
    everynode = _own_command()
    steps = [f"export KUBECONFIG={path}", f"{kubectl} get nodes"]
    if not options.controller:
        steps += [f"{everynode} install{context}", f"{everynode} run --native{context} &"]
    if EXAMPLE.is_file():
        steps += [f"{kubectl} apply -f {EXAMPLE}", f"{everynode} status log-agent{context}"]
    steps.append(f"{kubectl} get pods -o wide")
    lines = ["", "In another terminal:", "", *(f"    {step}" for step in steps), ""]
    if FIRST_PAGE.is_file():
        lines += [f"{FIRST_PAGE} goes on from there.", ""]
    return "\n".join(lines)


def _what_was_replaced(options: UpOptions, server: str) -> str:
    return (
        f"warning: {options.kubeconfig} led to {replace_control_characters(server)}, and leads to "
        "this cluster now; give each of two clusters a file with --kubeconfig"
    )


def _what_was_removed(options: UpOptions, removed: str) -> str:
    kept = f"; the cluster is kept in {options.data}" if options.data else ""
    return f"stopped{f', removed {removed}' if removed else ''}{kept}"


def _own_command() -> str:
    """How the user calls everynode: by its path if it is not on PATH."""
    beside = Path(sys.executable).with_name("everynode")
    return shlex.quote(str(beside)) if not which("everynode") and beside.exists() else "everynode"


def _start(clock: Clock, options: UpOptions) -> AbstractAsyncContextManager[RunningServer]:
    zones = tuple(f"zone-{chr(ord('a') + index)}" for index in range(options.zones))
    behaviour = Behaviour(speed=options.speed)
    components = ComponentOptions(nodes=options.nodes, zones=zones, behaviour=behaviour)
    if options.kubernetes:
        # Imported here: it takes a fifth of a second, which `everynode up` alone need not pay.
        from everynode.cli.serving import kubernetes_cluster

        return kubernetes_cluster.start(
            clock, port=options.port, data=options.data, components=components
        )
    return _start_embedded(clock, options, components)


@asynccontextmanager
async def _start_embedded(
    clock: Clock, options: UpOptions, components: ComponentOptions
) -> AsyncIterator[RunningServer]:
    try:
        server = Server(clock=clock, data=options.data)
    except DataError as error:
        raise _data_error(error) from None
    try:
        await server.start(port=options.port)
        yield RunningServer(
            server.url,
            server.transport,
            server.kubeconfig(),
            components,
            partial(_broken, server),
        )
    except PortError as error:
        raise UserError(f"{error} with --port") from None
    finally:
        await _stop(server)


async def _stop(server: Server) -> None:
    try:
        await server.stop()
    except DataError as error:
        raise _data_error(error) from None


async def _broken(server: Server) -> NoReturn:
    try:
        await server.broken()
    except DataError as error:
        raise _data_error(error) from None


def _data_error(error: DataError) -> UserError:
    message = str(error)
    return UserError(
        message if "choose" in message else f"{message}; choose another folder with --data"
    )
