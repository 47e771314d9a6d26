"""Running the controller, for the cluster of a kubeconfig or of the pod it runs in."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from everynode import log
from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.cli.access.connection import find_access
from everynode.cli.access.prerequisites import Prerequisites, check_prerequisites
from everynode.cli.serving import event_loop
from everynode.clock import Clock, SystemClock
from everynode.controller.health_server import AddressError, parse_address, serve
from everynode.controller.leader import AlwaysLeader, Election, Leadership
from everynode.controller.run import GC_THRESHOLD, Controller, ControllerOptions
from everynode.errors import UsageError, UserError
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from everynode.kube.transport import Transport

DASHBOARD_SHARE: Final = 0.02  # of the time; the controller's work comes first
_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What was typed."""

    namespace: str
    native: bool
    no_advanced: bool
    pull_ahead: bool
    schedule_daemonset_pods: bool
    leader_elect: bool
    lease_namespace: str
    health_address: str
    metrics_address: str
    dashboard_address: str
    log_format: str
    log_level: str
    kubeconfig: str
    context: str

    @property
    def controller(self) -> ControllerOptions:
        """The options of the controller itself."""
        return ControllerOptions(
            native=self.native,
            advanced=not self.no_advanced,
            namespace=self.namespace,
            pull_always=self.pull_ahead,
            by_scheduler=self.schedule_daemonset_pods,
            instance=socket.gethostname(),  # in a pod, the name of the pod
        )


def run_controller(options: RunOptions) -> None:
    """Run the controller until Ctrl-C or SIGTERM; raises UserError."""
    _check_address("--health-address", options.health_address)
    _check_address("--metrics-address", options.metrics_address)
    _check_address("--dashboard-address", options.dashboard_address, loopback=True)
    clock = SystemClock()
    log.set_up(sys.stderr, clock, style=options.log_format, level=options.log_level)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    event_loop.run(_run(clock, options))


def _check_address(flag: str, address: str, *, loopback: bool = False) -> None:
    try:
        found = parse_address(address, flag=flag)
    except AddressError as error:
        raise UsageError(str(error)) from None
    if loopback and found is not None and found[0] not in _LOOPBACK:
        raise UsageError(
            f"{flag} {address}: it takes tokens over plain HTTP, on loopback only; write "
            f"127.0.0.1:{found[1]} and reach it by kubectl port-forward"
        )


async def _run(clock: Clock, options: RunOptions) -> None:
    access = find_access(clock, kubeconfig=options.kubeconfig, context=options.context)
    client = Client(HttpTransport(access, clock), clock)
    leadership = _leadership(client.transport, clock, options)
    controller = Controller(client.transport, clock, options.controller, leadership=leadership)
    try:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(client.close)
            # A controller in a pod has no context: it starts anyway and reports in /readyz what is
            # missing.
            if access.context:
                await check_prerequisites(client, _needs(options))
            for flag, address, metrics in (
                ("--health-address", options.health_address, None),
                ("--metrics-address", options.metrics_address, controller.metrics),
            ):
                where = parse_address(address, flag=flag)
                if where is not None:
                    await stack.enter_async_context(
                        serve(where, health=controller.health, metrics=metrics, flag=flag)
                    )
            await stack.enter_async_context(
                _dashboard(controller, client.transport, clock, options)
            )
            await controller.run()
    except AddressError as error:
        raise UserError(str(error)) from None


@contextlib.asynccontextmanager
async def _dashboard(
    controller: Controller, transport: Transport, clock: Clock, options: RunOptions
) -> AsyncIterator[None]:
    """Serve the page inside a `with` block, to users whose rights the API server reviews.

    It shows what the controller watches anyway, also while another process leads.
    """
    where = parse_address(options.dashboard_address, flag="--dashboard-address")
    if where is None:
        yield
        return
    from everynode.dashboard.access import ReviewedRights  # late, as most runs serve no page
    from everynode.dashboard.server import Dashboard, serve
    from everynode.inspect.shared_caches import SharedCaches

    client = Client(transport, clock)
    namespace = options.namespace
    dashboard = Dashboard(
        client,
        clock,
        cluster="in the cluster",
        namespaces=(namespace,) if namespace else (),
        flavours=tuple(options.controller.flavours),
        access=ReviewedRights(client, clock, options.controller.flavours),
        shared=SharedCaches(controller.informers, controller.watchers),
        share=DASHBOARD_SHARE,
    )
    host, port = where
    option = "--dashboard-address"
    async with serve(dashboard, port, host=host, forwarded=True, option=option) as used:
        log.Log("dashboard").info("Serving the dashboard", address=f"http://{host}:{used}/")
        yield


def _needs(options: RunOptions) -> Prerequisites:
    home = _lease_namespace(options) if options.leader_elect else ""
    page = parse_address(options.dashboard_address, flag="--dashboard-address") is not None
    return Prerequisites(controller=options.controller, lease_namespace=home, dashboard=page)


def _leadership(transport: Transport, clock: Clock, options: RunOptions) -> Leadership:
    if not options.leader_elect:
        return AlwaysLeader()
    return Election(
        transport,
        clock,
        identity=f"{socket.gethostname()}_{os.getpid()}_{clock.uid()}",
        namespace=_lease_namespace(options),
    )


def _lease_namespace(options: RunOptions) -> str:
    if options.lease_namespace:
        return options.lease_namespace
    try:
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return CONTROLLER_NAMESPACE
