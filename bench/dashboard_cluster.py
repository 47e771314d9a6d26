"""A cluster for the benchmark of the dashboard: nodes of which some change every second.

    python -m bench.dashboard_cluster --kubeconfig FILE --nodes 20000 --changes 100

It is the embedded API server with one Advanced DaemonSet. The controller that is measured creates
the pods; this process plays all kubelets at once: it makes every pod Ready, and from then on takes
and gives back the readiness of some of them, in turn. It prints `ready` when all pods are Ready.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec
import yaml

from everynode.api.times import format_time
from everynode.apiserver.server import Server
from everynode.cli.serving import event_loop
from everynode.clock import SystemClock
from everynode.install import InstallOptions, install_objects
from everynode.install.apply import Consent, apply_all
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, NODES, PODS

Object = dict[str, Any]
NAME = "agent"
TICK = 0.1  # seconds between two groups of changes
_clock = SystemClock()


def node(index: int) -> Object:
    name = f"node-{index:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
        "node-pool": f"pool-{index % 20}",
    }
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": format_time(_clock.now())}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "conditions": [ready],
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        },
    }


def daemonset() -> Object:
    labels = {"app": NAME}
    return {
        "apiVersion": ADVANCED.api_version,
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "agent", "image": "registry.example/agent:1"}],
                    # New nodes are tainted until a controller has seen them; none runs here.
                    "tolerations": [{"operator": "Exists"}],
                },
            },
        },
    }


async def set_ready(client: Client, pod: str, *, ready: bool) -> None:
    moment = format_time(_clock.now())
    word = "True" if ready else "False"
    condition = {"type": "Ready", "status": word, "lastTransitionTime": moment}
    body = {"status": {"phase": "Running", "conditions": [condition]}}
    request = verbs.patch(PODS, pod, body, namespace="default", subresource="status")
    await client.write(request, bytes)


async def play(arguments: argparse.Namespace) -> None:
    server = Server(clock=_clock)
    await server.start()
    try:
        client = Client(server.transport, _clock)
        objects = install_objects(InstallOptions())
        async for _ in apply_all(client, _clock, objects, Consent(adopt_crd=False, force=False)):
            pass
        for index in range(arguments.nodes):
            await client.write(verbs.create(NODES, node(index)), bytes)
        await client.write(verbs.create(ADVANCED, daemonset(), namespace="default"), bytes)
        half = arguments.kubeconfig.with_suffix(".half")
        half.touch(mode=0o600)
        half.write_text(yaml.safe_dump(server.kubeconfig()))
        half.rename(arguments.kubeconfig)
        names = await created_pods(client, arguments.nodes)
        for name in names:
            await set_ready(client, name, ready=True)
        print("ready", flush=True)
        await change(client, names, round(arguments.changes * TICK))
    finally:
        await server.stop()


class _Named(msgspec.Struct):
    class Meta(msgspec.Struct):
        name: str = ""

    metadata: Meta


async def created_pods(client: Client, wanted: int) -> list[str]:
    """Wait until there are as many pods as nodes, and return their names."""
    decode = msgspec.json.Decoder(_Named).decode
    while True:
        found = await client.read_all(PODS, decode, options=verbs.ListOptions(namespace="default"))
        if len(found) >= wanted:
            return [each.metadata.name for each in found]
        await _clock.sleep(1.0)


async def change(client: Client, names: list[str], at_once: int) -> None:
    """Change some pods at every tick: not Ready in this round, Ready in the next."""
    ready, at = False, 0
    due = _clock.monotonic()
    while True:
        for name in names[at : at + at_once]:
            await set_ready(client, name, ready=ready)
        at += at_once
        if at >= len(names) // 10:  # within the promise of maxUnavailable
            at, ready = 0, not ready
        due += TICK
        await _clock.sleep(due - _clock.monotonic())


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--changes", type=int, default=100, help="nodes that change in a second")
    return parser.parse_args()


if __name__ == "__main__":
    event_loop.run(play(read_arguments()))
