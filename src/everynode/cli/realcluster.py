"""A real control plane behind simulated nodes: what `everynode up --kubernetes` runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from everynode.cli.errors import UserError
from everynode.cli.kubernetes.binaries import BinariesMissingError
from everynode.cli.kubernetes.components import CONTROLLER_MANAGER
from everynode.cli.kubernetes.controlplane import ControlPlane, Options
from everynode.cli.kubernetes.processes import ProcessError
from everynode.cli.manifests import Settings, objects
from everynode.cli.manifests.apply import Consent, bring
from everynode.cli.site import Site
from everynode.clock import Clock
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.cluster.server import kubeconfig
from everynode.kube.client import Client
from everynode.kube.config import load
from everynode.kube.http import HttpTransport

HEARTBEAT: Final = 10.0  # seconds, as real kubelets have it
_RENEWALS: Final = 50  # at most so many of them a second; large clusters beat more slowly
_MISSED: Final = 4  # heartbeats until a node is given up, as Kubernetes has it


@asynccontextmanager
async def start(
    clock: Clock, *, port: int, data: Path | None, machinery: MachineryOptions
) -> AsyncIterator[Site]:
    """Start a real control plane with our CRD on it; raises UserError."""
    heartbeat = max(HEARTBEAT, machinery.nodes / _RENEWALS)
    grace = f"--node-monitor-grace-period={_MISSED * heartbeat:.0f}s"
    options = Options(folder=data, port=port, extra_flags={CONTROLLER_MANAGER: [grace]})
    plane = ControlPlane(options)
    try:
        await plane.start()
    except (ProcessError, BinariesMissingError) as error:
        raise UserError(str(error)) from None
    try:
        transport = HttpTransport(load(clock, kubeconfig=str(plane.kubeconfig)), clock)
        try:
            client = Client(transport, clock)
            async for _ in bring(client, clock, objects(Settings()), Consent()):
                pass  # of a cluster that is only just there it is no news
            yield Site(
                plane.url,
                transport,
                kubeconfig(plane.url, authority=plane.ca_file.read_bytes(), token=plane.token),
                replace(machinery, controllers=False, node_controllers=False, heartbeat=heartbeat),
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
