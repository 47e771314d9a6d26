"""What the dashboard costs a controller and a browser, with many nodes of which some change.

    python -m bench.dashboard [--nodes 20000] [--changes 100] [--seconds 20]

Three processes: `bench.dashboard_cluster` (API server and nodes), a controller that serves the page
as `everynode run --dashboard-address` does (but for the reviews of tokens, which the embedded API
server does not answer), and Debian's Chromium. One viewer is the browser, the other reads the same
stream without drawing it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec

from bench import machine
from bench.dashboard_cluster import NAME
from bench.measured_controller import free_port
from bench.process_usage import ProcessUsage, read_process
from everynode.api.daemonset import Flavour
from everynode.cli.serving import event_loop
from everynode.cli.serving.run import DASHBOARD_SHARE
from everynode.clock import SystemClock
from everynode.controller.run import GC_THRESHOLD, Controller, ControllerOptions
from everynode.dashboard.server import Dashboard, serve
from everynode.inspect.shared_caches import SharedCaches
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from tests.browser.chromium import Page, chromium

READY_WITHIN = 600.0
PATIENCE = 120.0  # seconds until the page shows the fleet
WATCH_TASKS = (
    "window.tasks = []; new PerformanceObserver((list) => { for (const each of list.getEntries()) "
    "window.tasks.push(each.duration); }).observe({ type: 'longtask' }); 0"
)
GRID = "document.querySelector('.grid canvas')?.height > 0 && performance.now()"
_clock = SystemClock()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: what was seen, and what is wanted."""

    what: str
    seen: float
    limit: float
    unit: str


async def serve_page(kubeconfig: Path, port: int) -> None:
    """Be the controller that serves the page."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    config = load_cluster_config(_clock, kubeconfig=str(kubeconfig))
    transport = HttpTransport(config, _clock)
    controller = Controller(transport, _clock, ControllerOptions())
    page = Dashboard(
        Client(transport, _clock),
        _clock,
        cluster="bench",
        flavours=(Flavour.ADVANCED,),
        shared=SharedCaches(controller.informers, controller.watchers),
        share=DASHBOARD_SHARE,
    )
    async with serve(page, port):
        await controller.run()


class Viewer:
    """A viewer that reads the stream of the set and draws nothing."""

    def __init__(self) -> None:
        self.bytes = 0
        self.snapshot = asyncio.Event()

    async def read(self, address: str) -> None:
        url = f"{address}api/set/ads/default/{NAME}/stream"
        limits = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=limits) as session, session.get(url) as answer:
            async for data in answer.content.iter_any():
                self.bytes += len(data)
                self.snapshot.set()


@contextlib.asynccontextmanager
async def processes(arguments: argparse.Namespace, folder: Path) -> AsyncIterator[tuple[int, str]]:
    """Run cluster and controller; yields the controller's pid and the page's address."""
    kubeconfig, port = folder / "kubeconfig", free_port()
    at = ["--kubeconfig", str(kubeconfig)]
    sizes = ["--nodes", str(arguments.nodes), "--changes", str(arguments.changes)]
    python = (sys.executable, "-m")
    pipe = asyncio.subprocess.PIPE
    cluster = await asyncio.create_subprocess_exec(
        *python, "bench.dashboard_cluster", *at, *sizes, stdout=pipe
    )
    started = [cluster]
    try:
        async with asyncio.timeout(READY_WITHIN):
            while not kubeconfig.exists():
                await _clock.sleep(0.2)
            served = await asyncio.create_subprocess_exec(
                *python, "bench.dashboard", *at, "--port", str(port)
            )
            started.append(served)
            assert cluster.stdout is not None
            assert await cluster.stdout.readline() == b"ready\n", "the cluster ended"
        await _clock.sleep(5.0)  # the controller has seen it all
        yield served.pid, f"http://127.0.0.1:{port}/"
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def measure(arguments: argparse.Namespace, folder: Path) -> list[Row]:
    async with processes(arguments, folder) as (pid, address):
        seconds = arguments.seconds
        alone, before = await _cpu(pid, seconds), read_process(pid)
        async with chromium(folder / "profile") as page, asyncio.TaskGroup() as group:
            await page.size(1280)
            _, first = await _open(page, address)
            viewer = Viewer()
            reading = group.create_task(viewer.read(address))
            await viewer.snapshot.wait()
            painted, drawn = await _open(page, address)
            await page.run(WATCH_TASKS)
            await _clock.sleep(2.0)
            await page.run("window.tasks = []; 0")
            sent = viewer.bytes
            watched, after = await _cpu(pid, seconds), read_process(pid)
            sent = viewer.bytes - sent
            tasks = await page.run("window.tasks")
            shown = await page.run("document.querySelector('.tile .note').textContent")
            print(f"the page shows: {shown}")
            reading.cancel()
    rows = _rows(alone, watched, before, after, sent / seconds, painted, drawn, max(tasks or [0]))
    return [
        Row(what="the same for the first viewer", seen=first, limit=float("inf"), unit="s"),
        *rows,
    ]


def _rows(
    alone: float,
    watched: float,
    before: ProcessUsage,
    after: ProcessUsage,
    sent: float,
    painted: float,
    drawn: float,
    longest: float,
) -> list[Row]:
    def row(what: str, seen: float, limit: float, unit: str) -> Row:
        return Row(what=what, seen=seen, limit=limit, unit=unit)

    return [
        row("first paint", painted, 2.0, "s"),
        row("the whole fleet drawn", drawn, 2.0, "s"),
        row("longest task of the page", longest, 100.0, "ms"),
        row("sent to one viewer", sent / 1000, 60.0, "KB/s"),
        row("controller without viewers", alone * 100, float("inf"), "% of a core"),
        row("more with two viewers", (watched - alone) * 100, 5.0, "% of a core"),
        row("more memory", after.resident - before.resident, 60.0, "MB"),
    ]


async def _cpu(pid: int, seconds: float) -> float:
    """Return which part of a core a process uses."""
    before, began = read_process(pid).cpu, _clock.monotonic()
    await _clock.sleep(seconds)
    return (read_process(pid).cpu - before) / (_clock.monotonic() - began)


async def _open(page: Page, address: str) -> tuple[float, float]:
    """Open the page of the set; return seconds until something and until the fleet is drawn."""
    await page.open(f"{address}#/set/ads/default/{NAME}")
    drawn = await page.wait(GRID, PATIENCE)
    painted = await page.run(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    )
    return (painted / 1000, drawn / 1000)


def print_rows(rows: list[Row]) -> None:
    for row in rows:
        limit = "" if row.limit == float("inf") else f"≤ {row.limit:g}"
        kept = "" if not limit else "kept" if row.seen <= row.limit else "MISSED"
        print(f"{row.what:28} {row.seen:8.1f} {row.unit:12} {limit:8} {kept}")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=100, help="nodes that change in a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--kubeconfig", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


async def main(arguments: argparse.Namespace) -> None:
    if arguments.kubeconfig is not None:
        await serve_page(arguments.kubeconfig, arguments.port)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = await measure(arguments, Path(folder))
    load = f"{os.getloadavg()[0]:.1f}"
    print(f"{arguments.nodes} nodes, {arguments.changes} change in a second; load {load}")
    print_rows(rows)
    finite = [row if row.limit != float("inf") else _without_limit(row) for row in rows]
    machine.append("dashboard", finite, nodes=str(arguments.nodes), load=load)


def _without_limit(row: Row) -> Row:
    return msgspec.structs.replace(row, limit=0.0)


if __name__ == "__main__":
    event_loop.run(main(read_arguments()))
