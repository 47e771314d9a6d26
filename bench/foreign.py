"""What pods that are none of our business cost: resident memory with and without 50,000 of them.

    python -m bench.foreign [--pods 50000]

Pods of Deployments never reach us: the server filters by the label that only DaemonSets and
StatefulSets write. So all the foreign pods here are of StatefulSets, the worst case: they arrive in
the list at the start, each is changed once, and none of them may stay. Each measurement is a
process of its own with 5,000 pods of DaemonSets in its cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import uvloop

from bench import decode, machine
from bench.process_usage import read_process
from bench.table import Row, print_table
from everynode.api.keys import PULL_POD_OWNER, REVISION_HASH
from everynode.clock import SystemClock
from everynode.controller.run import Controller, ControllerOptions
from everynode.kube.requests import Request, Response

OWN = 5000
LIMIT_MB = 10.0
END = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
)


def foreign_pod(chance: random.Random, index: int) -> dict[str, Any]:
    """The hundredth part of a StatefulSet: labels, images and names of its own."""
    pod, name = decode.pod(chance, index), f"database-{index // 100}"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name}
    pod["metadata"] |= {
        "name": f"{name}-{index % 100}",
        "namespace": f"team-{index // 1000}",
        "labels": {"app": name, REVISION_HASH: f"{name}-5d9c7b8f6"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    for container in pod["spec"]["containers"]:
        container["image"] = f"registry.example.com/{name}:1"
    return pod


class Stream:
    """A list of pods as a watch sends it, then changes, then silence."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.exhausted = False
        self._lines = lines

    async def readline(self) -> bytes:
        line = next(self._lines, None)
        if line is None:
            self.exhausted = True
            await asyncio.Event().wait()
        return line or b""

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        pass


class Player:
    """A server on which nothing happens but pods."""

    def __init__(self, foreign: int) -> None:
        self._foreign = foreign
        self.pods: Stream | None = None  # the newest: a controller that begins to lead lists anew

    async def send(self, request: Request) -> Response:
        return Response(200, b'{"metadata":{"resourceVersion":"9"},"items":[]}')

    async def open(self, request: Request) -> Stream:
        pods = (
            request.path == "/api/v1/pods"
            and ("labelSelector", PULL_POD_OWNER) not in request.query
        )
        stream = Stream(self._lines() if pods else iter([END]))
        if pods:
            self.pods = stream
        return stream

    def is_done(self) -> bool:
        """Whether all objects have been delivered."""
        return self.pods is not None and self.pods.exhausted

    async def close(self) -> None:
        pass

    def _lines(self) -> Iterator[bytes]:
        chance = random.Random(1)
        for index in range(OWN):
            yield _line("ADDED", decode.pod(chance, index), 100 + index)
        for index in range(self._foreign):
            yield _line("ADDED", foreign_pod(chance, index), 100 + index)
        yield END
        for index in range(self._foreign):
            yield _line("MODIFIED", foreign_pod(chance, index), 1_000_000 + index)


def _line(kind: str, pod: dict[str, Any], version: int) -> bytes:
    pod["metadata"]["resourceVersion"] = str(version)
    return json.dumps({"type": kind, "object": pod}, separators=(",", ":")).encode()


async def hold(foreign: int) -> None:
    """Read everything, report it, and stay until stopped."""
    player = Player(foreign)
    clock = SystemClock()
    task = asyncio.ensure_future(Controller(player, clock, ControllerOptions(native=True)).run())
    while not player.is_done():
        await clock.sleep(1)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    task.cancel()
    await asyncio.wait([task])


def measure(foreign: int) -> Row:
    argv = [sys.executable, "-m", "bench.foreign", f"--hold={foreign}"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise SystemExit("the controller ended")
        seen = read_process(process.pid)
        process.communicate("\n")
    return Row(
        who="everynode",
        work=f"{foreign} foreign pods",
        nodes=0,
        cpu_ms=0.0,
        writes=0.0,
        resident=seen.resident,
        peak=seen.peak,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--hold", type=int, help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.hold is not None:
        uvloop.run(hold(typed.hold))
        return
    rows = [measure(0), measure(typed.pods)]
    print_table(rows)
    more = rows[1].resident - rows[0].resident
    print(f"{typed.pods} foreign pods add {more:.1f} MB (at most {LIMIT_MB:.0f})")
    machine.append("foreign", rows)


if __name__ == "__main__":
    main()
