"""What a rollout costs: our controller beside the DaemonSet controllers of kube-controller-manager.

    python -m bench.rollout [--nodes 1000 --nodes 5000] [--updated 1000] [--quick]

Each controller in turn (ours, and kube-controller-manager of the current and the previous release)
is a process of its own on the same API server and the same simulated nodes: it creates a pod on
every node, then updates them with maxUnavailable 10 and with 10%, all of them or as many as
--updated says, then rests. Only its own CPU, memory and writes count. Before all that, one of them
creates all pods once, unmeasured. The table and the machine are appended to
bench/results/rollout.jsonl. Ctrl-C ends it and all that it started.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench import machine, rollout_cluster
from bench.measured_controller import EVERYNODE, PEERS, MeasuredController, start_controller
from bench.rollout_cluster import Object, RolloutCluster, Size, clock
from bench.table import Row, print_ratios, print_table
from everynode.cli.serving import event_loop
from everynode.kube.resources import ADVANCED, DAEMONSETS, Resource
from everynode.localkube.binaries import BinariesMissingError

AGENT = "agent"
REST = 10.0
HALT: Object = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
KINDS = {"native": DAEMONSETS, "advanced": ADVANCED}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was typed."""

    sizes: tuple[Size, ...]
    server: str
    contenders: tuple[str, ...]
    max_unavailable: tuple[str, ...]
    updated: int  # pods of each update; the rest of a large fleet costs the same
    kind: str
    profile: str

    @property
    def resource(self) -> Resource:
        return KINDS[self.kind]


def read_arguments() -> Wishes:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="1000 and 5000 by default")
    parser.add_argument("--quick", action="store_true", help="200 and 1000 nodes, pods start fast")
    parser.add_argument("--server", choices=("kubernetes", "embedded"), default="kubernetes")
    names = (EVERYNODE, *PEERS)
    parser.add_argument("--only", choices=names, action="append", help="measure only this one")
    parser.add_argument("--max-unavailable", action="append", help="10 and 10%% by default")
    parser.add_argument("--updated", type=int, default=1 << 30, help="pods; all by default")
    parser.add_argument("--kind", choices=tuple(KINDS), default="native", help="of DaemonSet")
    parser.add_argument("--start", type=float, help="seconds a pod takes to start")
    parser.add_argument("--stop", type=float, help="seconds a pod takes to stop")
    parser.add_argument(
        "--profile", default="", metavar="FILE", help="profile ours, for python -m pstats"
    )
    typed = parser.parse_args()
    # The peers serve native DaemonSets only, and only what a real API server says.
    alone = typed.server == "embedded" or typed.kind == "advanced"
    contenders = tuple(typed.only or ((EVERYNODE,) if alone else names))
    peers = [PEERS[who] for who in contenders if who != EVERYNODE]
    if peers and alone:
        parser.error("kube-controller-manager needs --server kubernetes and --kind native")
    try:
        for find in peers:
            find()
    except BinariesMissingError as error:
        parser.error(str(error))
    pace = 0.2 if typed.quick else 0.5
    start, stop = (pace if given is None else given for given in (typed.start, typed.stop))
    return Wishes(
        sizes=tuple(
            Size(nodes, start, stop)
            for nodes in typed.nodes or ((200, 1000) if typed.quick else (1000, 5000))
        ),
        server=typed.server,
        contenders=contenders,
        max_unavailable=tuple(typed.max_unavailable or ("10", "10%")),
        updated=typed.updated,
        kind=typed.kind,
        profile=typed.profile,
    )


def daemonset(kind: Resource) -> Object:
    """A node agent as many run it: mounts, environment, tolerations, resources."""
    labels = {"app": AGENT}
    container = {
        "image": "registry.example/agent:1",
        "args": ["--config=/etc/agent/config.yaml", "--log-level=info"],
        "env": [{"name": f"AGENT_SETTING_{n}", "value": f"value-{n}" * 3} for n in range(12)],
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
        "volumeMounts": [
            {"name": name, "mountPath": f"/host/{name}", "readOnly": True}
            for name in ("proc", "sys", "root")
        ],
    }
    template = {
        "metadata": {"labels": labels, "annotations": {"prometheus.io/scrape": "true"}},
        "spec": {
            "containers": [{"name": AGENT, **container}, {"name": "reloader", **container}],
            "volumes": [
                {"name": name, "hostPath": {"path": f"/{name}"}} for name in ("proc", "sys", "root")
            ],
            "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 10,
        },
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": AGENT},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def update(version: int, max_unavailable: str) -> Object:
    amount: object = int(max_unavailable) if max_unavailable.isdecimal() else max_unavailable
    return {
        "spec": {
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": amount}},
            "template": {"metadata": {"annotations": {"example.com/version": str(version)}}},
        }
    }


class Trial:
    """One controller on one cluster."""

    def __init__(self, where: RolloutCluster, who: MeasuredController, options: Wishes) -> None:
        self._place = where
        self._who = who
        self._kind = options.resource
        self._wishes = options

    async def warm_up(self) -> None:
        """Do the first part of it, so that the server is warm."""
        await self._create()
        await self._until_done(self._place.size.nodes)

    async def run(self) -> list[Row]:
        nodes = self._place.size.nodes
        await self._who.until_at_rest()
        rows = [await self._measure("first creation", self._create(), pods=nodes)]
        pods = min(nodes, self._wishes.updated)
        for version, amount in enumerate(self._wishes.max_unavailable):
            work = self._place.patch(self._kind, AGENT, update(version, amount))
            what = f"update, maxUnavailable {amount}"
            rows.append(await self._measure(what, work, pods=pods, amount=amount))
        if pods < nodes:
            await self._place.patch(self._kind, AGENT, HALT)
            await self._who.until_at_rest()
        rows.append(await self._rest())
        return rows

    async def _create(self) -> None:
        await self._place.create(self._kind, daemonset(self._kind))

    async def _measure(
        self, what: str, begin: Awaitable[None], *, pods: int, amount: str = ""
    ) -> Row:
        who, pace, nodes = self._who, self._place.pace, self._place.size.nodes
        report(f"{nodes} nodes, {who.name}: {what}")
        pace.begin()
        cpu, writes, began = who.read().cpu, await who.writes(), clock.monotonic()
        await begin
        done = await self._until_done(pods)
        seconds = clock.monotonic() - began
        if done == nodes:
            await who.until_at_rest()
        after = who.read()
        return Row(
            who=who.name,
            work=what,
            nodes=nodes,
            cpu_ms=(after.cpu - cpu) * 1000 / done,
            writes=_total(await who.writes() - writes) / done,
            seconds=seconds,
            created=0.0 if amount else pace.created_within,
            rate=done / seconds,
            ideal=_scaled(amount, nodes) / (pace.stopping.seconds + pace.starting.seconds)
            if amount
            else 0.0,
            gap_ms=pace.gap.seconds * 1000,
            resident=after.resident,
            peak=after.peak,
        )

    async def _rest(self) -> Row:
        who = self._who
        cpu, writes = who.read().cpu, await who.writes()
        await clock.sleep(REST)
        after = who.read()
        return Row(
            who=who.name,
            work=f"at rest for {REST:.0f} s",
            nodes=self._place.size.nodes,
            cpu_ms=(after.cpu - cpu) * 1000,
            writes=_total(await who.writes() - writes),
            seconds=REST,
            resident=after.resident,
            peak=after.peak,
        )

    async def _until_done(self, pods: int) -> int:
        """Wait until that many pods are updated and available; return how many are."""
        nodes = self._place.size.nodes
        while True:
            self._who.read()  # it must be running
            found = await self._place.get(self._kind, AGENT)
            status = found.get("status", {})
            updated: int = status.get("updatedNumberScheduled", 0)
            if (
                status.get("observedGeneration") == found["metadata"]["generation"]
                and updated >= pods
                and (pods < nodes or status.get("numberAvailable") == nodes)
            ):
                return updated
            await clock.sleep(0.25)


def report(progress: str) -> None:
    print(f"{progress} …", file=sys.stderr, flush=True)


def _total(written: Counter[str]) -> int:
    return sum(written.values())


def _scaled(amount: str, nodes: int) -> int:
    return int(amount) if amount.isdecimal() else nodes * int(amount.rstrip("%")) // 100


async def run(options: Wishes) -> None:
    rows: list[Row] = []
    for size in options.sizes:
        report(f"{size.nodes} nodes: they come up")
        found = await _compare(size, options)
        machine.append("rollout", found, server=options.server, kind=options.kind)
        rows += found
    print_table(rows)
    print_ratios(rows)


async def _compare(size: Size, options: Wishes) -> list[Row]:
    """Have the contenders do the same in turn, at one place."""
    rows: list[Row] = []
    start_cluster = (
        rollout_cluster.real if options.server == "kubernetes" else rollout_cluster.embedded
    )
    async with start_cluster(size) as where:
        # A new server is up to 50% slower at first, which would count against the first controller.
        report(f"{size.nodes} nodes: the server warms up")
        async with _contender(where, options.contenders[-1]) as who:
            await Trial(where, who, options).warm_up()
        for name in options.contenders:
            report(f"{size.nodes} nodes: all pods go")
            await where.clear(options.resource, AGENT)
            async with _contender(where, name, options.profile) as who:
                rows += await Trial(where, who, options).run()
    return rows


@asynccontextmanager
async def _contender(
    where: RolloutCluster, name: str, profile: str = ""
) -> AsyncIterator[MeasuredController]:
    who = start_controller(name, where, profile)
    try:
        yield who
    finally:
        await who.stop()


if __name__ == "__main__":
    event_loop.run(run(read_arguments()))
