"""A real control plane behind simulated nodes: what `everynode up --kubernetes` runs."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from everynode.cli.errors import UserError
from everynode.cli.kubernetes.binaries import BinariesMissingError
from everynode.cli.kubernetes.components import CONTROLLER_MANAGER
from everynode.cli.kubernetes.controlplane import ControlPlane, Options
from everynode.cli.kubernetes.processes import ProcessError
from everynode.cli.manifests import Settings, objects
from everynode.cli.manifests.apply import Consent, carry_out, plan, wait_until_established
from everynode.cli.site import Site
from everynode.clock import Clock
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.kube.client import Client
from everynode.kube.config import load
from everynode.kube.http import HttpTransport
from everynode.kube.transport import Transport

Object = dict[str, Any]

NAME: Final = "everynode"
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
            await _install(transport, clock)
            yield Site(
                plane.url,
                transport,
                _kubeconfig(plane),
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


async def _install(transport: Transport, clock: Clock) -> None:
    client, consent = Client(transport, clock), Consent()
    for step in await plan(client, objects(Settings()), consent):
        await carry_out(client, step, consent)
        if step.wanted["kind"] == "CustomResourceDefinition":
            await wait_until_established(client, clock, step.name)


def _kubeconfig(plane: ControlPlane) -> Object:
    authority = base64.b64encode(plane.ca_file.read_bytes()).decode()
    cluster = {"server": plane.url, "certificate-authority-data": authority}
    return {
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": f"{NAME}-admin", "user": {"token": plane.token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": f"{NAME}-admin"}}],
        "current-context": NAME,
    }
