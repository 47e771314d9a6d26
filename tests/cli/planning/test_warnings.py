from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.objects import Node
from everynode.api.times import format_time
from everynode.api.versions import decode_daemonset
from everynode.cli.planning.dry_run import NOT_ASKED, DryRun
from everynode.cli.planning.warnings import plan_warnings
from everynode.inspect.evaluate import Evaluation, evaluate
from everynode.inspect.snapshot import Snapshot
from tests.support.stage import daemonset

NOW = 1_767_225_600.0
DAY = 86_400.0
SAFE: dict[str, Any] = {
    "minReadySeconds": 30,
    "template": {
        "spec": {
            "containers": [
                {
                    "name": "agent",
                    "image": "agent:v1",
                    "readinessProbe": {"exec": {"command": ["a"]}},
                }
            ]
        }
    },
}


def node(name: str, *, age: float = 100 * DAY, ready: str = "True") -> Node:
    body = {
        "metadata": {"name": name, "creationTimestamp": format_time(NOW - age)},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    return msgspec.convert(body, Node)


def before(manifest: dict[str, Any], *nodes: Node, **status: Any) -> Evaluation:
    metadata = {"namespace": "default", "uid": "1", "generation": 1, **manifest["metadata"]}
    ds = decode_daemonset({**manifest, "metadata": metadata, "status": status})
    return evaluate(Snapshot(ds, nodes, (), ()), NOW)


def warned(manifest: dict[str, Any], *nodes: Node, dry_run: DryRun = NOT_ASKED) -> list[str]:
    found = plan_warnings(manifest, before(manifest, *nodes), dry_run, {}, NOW)
    return [each.about for each in found]


def test_a_safe_change_gives_no_warning() -> None:
    assert warned(daemonset(**SAFE), node("a"), node("b")) == []


def test_a_refusal_comes_first_and_then_sick_nodes() -> None:
    nodes = [node("a", ready="Unknown"), node("b", ready="False"), node("c")]
    manifest = daemonset(**SAFE)
    found = plan_warnings(
        manifest, before(manifest, *nodes), DryRun("c", "no privileged pods"), {}, NOW
    )
    assert [each.about for each in found] == ["policy", "nodes", "nodes"]
    assert found[0].message.endswith("refuses a pod of the new version: no privileged pods")
    assert found[1].message.startswith("a is not reached")
    assert found[2].message.startswith("b is NotReady")


def test_nodes_without_room_are_named() -> None:
    manifest = daemonset(**SAFE)
    short = {f"n{number}": "Insufficient cpu" for number in range(5)}
    [found] = plan_warnings(manifest, None, NOT_ASKED, short, NOW)
    assert found.message == (
        "the new pod does not fit on 5 nodes: n0: Insufficient cpu; n1: Insufficient cpu; "
        "n2: Insufficient cpu and 2 more"
    )


def test_risks_of_the_manifest_are_those_that_lint_finds() -> None:
    manifest = daemonset(rolling={"maxSurge": 1})
    manifest["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 80}
    ]
    assert warned(manifest, node("a")) == [
        "spec.minReadySeconds",
        "spec.template.spec.containers[0].ports[0].hostPort",
        "spec.template.spec.containers[0].readinessProbe",
    ]


def test_a_partition_by_number_matters_where_nodes_come_and_go() -> None:
    path = "spec.updateStrategy.rollingUpdate.partition"
    manifest = daemonset(**SAFE, rolling={"partition": 1})
    old, young = node("a"), node("b", age=2 * DAY)
    assert warned(manifest, old, node("b", age=100 * DAY - 60)) == []
    assert warned(manifest, old, young) == [path]
    assert warned(manifest, young, node("c", age=2 * DAY)) == []  # a new cluster
    percent = daemonset(**SAFE, rolling={"partition": "50%"})
    assert warned(percent, old, young) == []


def test_a_native_set_of_another_controller_is_noticed() -> None:
    manifest = daemonset(**SAFE, api_version="apps/v1")
    seen = before(manifest, node("a"), observedGeneration=1)
    [found] = plan_warnings(manifest, seen, NOT_ASKED, {}, NOW)
    assert found.about == "controller"
