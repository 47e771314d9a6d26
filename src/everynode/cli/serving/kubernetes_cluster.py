"""Real control plane with simulated nodes: `everynode up --kubernetes`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from everynode.apiserver.server import kubeconfig
from everynode.cli.serving.running_server import RunningServer
from everynode.clock import Clock
from everynode.components.run import ComponentOptions
from everynode.errors import UserError
from everynode.install import InstallOptions, install_objects
from everynode.install.apply import Consent, apply_all
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from everynode.localkube.binaries import BinariesMissingError
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.control_plane_config import CONTROLLER_MANAGER
from everynode.localkube.processes import ProcessError

HEARTBEAT: Final = 10.0  # seconds, as real kubelets
# Lease renewals per second of all nodes together; more nodes renew less often.
_RENEWALS: Final = 50
_MISSED: Final = 4  # missed heartbeats until a node's Ready is Unknown, as in Kubernetes


@asynccontextmanager
async def start(
    clock: Clock, *, port: int, data: Path | None, components: ComponentOptions
) -> AsyncIterator[RunningServer]:
    """Start a real control plane with our CRD on it; raises UserError."""
    heartbeat = max(HEARTBEAT, components.nodes / _RENEWALS)
    grace = f"--node-monitor-grace-period={_MISSED * heartbeat:.0f}s"
    options = ControlPlaneOptions(folder=data, port=port, extra_flags={CONTROLLER_MANAGER: [grace]})
    plane = ControlPlane(options)
    try:
        await plane.start()
    except (ProcessError, BinariesMissingError) as error:
        raise UserError(str(error)) from None
    try:
        transport = HttpTransport(
            load_cluster_config(clock, kubeconfig=str(plane.kubeconfig)), clock
        )
        try:
            client = Client(transport, clock)
            async for _ in apply_all(client, clock, install_objects(InstallOptions()), Consent()):
                pass  # the outcomes are not printed: the cluster is new
            yield RunningServer(
                plane.url,
                transport,
                kubeconfig(plane.url, authority=plane.ca_file.read_bytes(), token=plane.token),
                replace(components, controllers=False, node_controllers=False, heartbeat=heartbeat),
                partial(_broken, plane),
            )
        finally:
            await transport.close()
    finally:
        await plane.stop()


async def _broken(plane: ControlPlane) -> NoReturn:
    try:
        await plane.broken()
    except ProcessError as error:
        raise UserError(str(error)) from None
