"""How much CPU time the ledger takes, from scratch and after one changed pod, and what it holds.

python bench/ledger.py            a table
python bench/ledger.py --json     the same as JSON
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import tracemalloc
from datetime import UTC, datetime

import msgspec

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    LabelSelector,
    UpdateStrategy,
)
from everynode.api.objects import (
    Condition,
    Container,
    ContainerState,
    ContainerStatus,
    Node,
    NodeCondition,
    NodeMeta,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodMeta,
    PodSpec,
    PodStatus,
    ReadinessGate,
    StateRunning,
    Taint,
)
from everynode.decide.ledger import Ledger
from everynode.decide.plan import Plan, make_plan
from everynode.decide.revisions.target import Revision
from everynode.decide.view import NodeView

NOW = 1_700_000_000.0
LONG_AGO = datetime.fromtimestamp(NOW - 10_000, UTC)
OWNER = (OwnerReference(keys.V1BETA1, keys.KIND, "agent", "ds-uid", True),)
# What is promised, in milliseconds.
FROM_SCRATCH, ONE_CHANGE = 150.0, 0.15
PAUSE = 0.02  # seconds without work, in which others fill the caches of the processor


def revision(hash: str) -> Revision:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}],
            "containers": [{"name": "agent", "image": f"registry.example/agent:{hash}"}],
        },
    }
    return Revision(f"agent-{hash}", hash, 1, msgspec.json.encode(template), uid=f"uid-{hash}")


def make(flavour: Flavour) -> Plan:
    old, new = revision("v1"), revision("v2")
    ds = DaemonSet(
        flavour=flavour,
        metadata=ObjectMeta(name="agent", namespace="system", uid="ds-uid", generation=2),
        selector=LabelSelector({"app": "agent"}),
        template=new.template,
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(10)),
        min_ready_seconds=10,
    )
    return make_plan(ds, new, (old, new), old.hash)


def make_node(index: int) -> Node:
    name = f"node-{index:05}"
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "zone": f"z{index % 3}"}
    taints = (Taint("node-role.kubernetes.io/master", "", "NoSchedule"),) if index % 50 == 0 else ()
    ready = NodeStatus((NodeCondition("MemoryPressure", "False"), NodeCondition("Ready", "True")))
    return Node(NodeMeta(name=name, uid=name, labels=labels), NodeSpec(taints=taints), ready)


def make_pod(node: str, hash: str, *, gated: bool, ready: bool = True) -> Pod:
    status = "True" if ready else "False"
    kinds = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
    gates = (keys.KRUISE_POD_READY,) if gated else ()
    conditions = tuple(Condition(kind, status, "", "", LONG_AGO) for kind in [*kinds, *gates])
    running = ContainerState(running=StateRunning(LONG_AGO))
    return Pod(
        PodMeta(
            name=f"agent-{node}",
            namespace="system",
            uid=f"pod-{node}-{hash}",
            resource_version="1",
            labels={"app": "agent", keys.REVISION_HASH: hash},
            owner_references=OWNER,
            creation_timestamp=LONG_AGO,
        ),
        PodSpec(
            node_name=node,
            readiness_gates=tuple(ReadinessGate(kind) for kind in gates),
            containers=(Container("agent", "registry.example/agent"),),
        ),
        PodStatus(
            "Running",
            conditions=conditions,
            container_statuses=(ContainerStatus("agent", ready=ready, state=running),),
            start_time=LONG_AGO,
        ),
    )


def make_views(count: int, hash: str, *, gated: bool) -> list[NodeView]:
    nodes = [make_node(index) for index in range(count)]
    return [NodeView(n.name, n, (make_pod(n.name, hash, gated=gated),)) for n in nodes]


def time_scratch(plan: Plan, views: list[NodeView], rounds: int = 7) -> float:
    """Milliseconds to decide a fleet that nothing is known of yet; the best of a few."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        start = time.thread_time()
        Ledger(plan, views).decide(NOW, DaemonSetStatus())
        taken.append((time.thread_time() - start) * 1000)
    return min(taken)


def time_change(
    plan: Plan, views: list[NodeView], *, gated: bool, rounds: int = 1000, pause: float = 0.0
) -> float:
    """Milliseconds for one changed pod: observed, decided, status worked out; the median.

    With a pause before each change it is as in a controller that waits for events.
    """
    ledger = Ledger(plan, views)
    status = ledger.decide(NOW, DaemonSetStatus()).status
    spread = [views[index * 7919 % len(views)] for index in range(rounds)]
    changed = [
        msgspec.structs.replace(
            view, pods=(make_pod(view.name, "v2", gated=gated, ready=index % 2 == 0),)
        )
        for index, view in enumerate(spread)
    ]
    taken = []
    for index, view in enumerate(changed):
        if pause:
            time.sleep(pause)
        start = time.thread_time()
        ledger.observe(view)
        decision = ledger.decide(NOW + index * 0.001, status)
        taken.append((time.thread_time() - start) * 1000)
        status = decision.status
    return statistics.median(taken)


def measure_memory(plan: Plan, views: list[NodeView]) -> float:
    """Bytes a ledger holds per node, beside the view itself."""
    tracemalloc.start()
    ledger = Ledger(plan, views)
    ledger.decide(NOW, DaemonSetStatus())
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ledger.sums.desired == len(views)
    return held / len(views)


Row = tuple[str, float, str, float | None]


def rows() -> list[Row]:
    found: list[Row] = []
    for flavour in (Flavour.NATIVE, Flavour.ADVANCED):
        gated, plan = flavour is Flavour.ADVANCED, make(flavour)
        fleets = {count: make_views(count, "v1", gated=gated) for count in (1000, 5000, 20000)}
        what = f"from scratch, 5,000 nodes, {flavour.value}"
        found.append((what, time_scratch(plan, fleets[5000]), "ms", FROM_SCRATCH))
        for count, views in fleets.items():
            what = f"one changed pod among {count:,}, {flavour.value}"
            found.append((what, time_change(plan, views, gated=gated), "ms", ONE_CHANGE))
        idle = time_change(plan, fleets[5000], gated=gated, rounds=200, pause=PAUSE)
        what = f"one among 5,000 after {PAUSE * 1000:.0f} ms of sleep, {flavour.value}"
        found.append((what, idle, "ms", None))
        what = f"memory per node, {flavour.value}"
        found.append((what, measure_memory(plan, fleets[5000]), "bytes", None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ledger.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    found = rows()
    if as_json:
        names = ("what", "value", "unit", "limit")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in found], indent=2))
        return
    for what, value, unit, limit in found:
        allowed = "" if limit is None else f"  (at most {limit:g})"
        print(f"{what:<45} {value:>10.3f} {unit}{allowed}")


if __name__ == "__main__":
    main()
