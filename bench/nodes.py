"""Simulated nodes of a cluster, in a process of their own, until it is stopped.

    python -m bench.nodes --kubeconfig FILE --nodes 1000 --start 0.5 --stop 0.5
    python -m bench.nodes --embedded FILE --nodes 1000 --start 0.5 --stop 0.5

With --embedded it is the API server, too: the embedded one, over HTTPS; FILE is where it writes
the kubeconfig.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import yaml

from everynode.apiserver.server import Server
from everynode.cli.serving import event_loop
from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.http.transport import HttpTransport


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kubeconfig", type=Path)
    where.add_argument("--embedded", type=Path)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--start", type=float, required=True)
    parser.add_argument("--stop", type=float, required=True)
    return parser.parse_args()


async def play(arguments: argparse.Namespace) -> None:
    clock = SystemClock()
    options = ComponentOptions(
        nodes=arguments.nodes,
        behaviour=Behaviour(
            pull=(0.0, 0.0), start=arguments.start, stop=arguments.stop, events=False
        ),
        controllers=arguments.embedded is not None,
    )
    if arguments.embedded is None:
        transport = HttpTransport(
            load_cluster_config(clock, kubeconfig=str(arguments.kubeconfig)), clock
        )
        try:
            await Components(transport, clock, options).run()
        finally:
            await transport.close()
        return
    server = Server(clock=clock)
    await server.start()
    try:
        half = arguments.embedded.with_suffix(".half")
        half.touch(mode=0o600)
        half.write_text(yaml.safe_dump(server.kubeconfig()))
        half.rename(arguments.embedded)
        async with asyncio.TaskGroup() as group:
            group.create_task(Components(server.transport, clock, options).run())
    finally:
        await server.stop()


if __name__ == "__main__":
    event_loop.run(play(read_arguments()))
