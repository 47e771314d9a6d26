"""Plans are compared with what then really happens, in a cluster on virtual time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.versions import decode_daemonset
from everynode.apiserver.patches.json_patch import apply_merge_patch
from everynode.cli.planning.timing import read_durations, simulated_timing
from everynode.forecast.answer import ForecastError
from everynode.forecast.node_plans import NodeAction, NodePlan
from everynode.forecast.planned_rollout import PlanRequest, RolloutPlan, plan_rollout
from everynode.forecast.recording import NodeState
from everynode.inspect.stored_objects import StoredObjects
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Timing
from tests.support.virtual_cluster import Object, VirtualCluster, in_virtual_cluster, is_complete

TIMING = Timing(pull=4.0, start=9.0, ready=6.0, stop=7.0)
STOPPED = {"metadata": {"annotations": {"sim.everynode.io/stopped": "true"}}}
SLOW = {"metadata": {"annotations": {"sim.everynode.io/slow": "2"}}}
NOT_READY = {"metadata": {"annotations": {"sim.everynode.io/not-ready": "true"}}}


def image(version: str) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": version}]}}}}


def planned(objects: StoredObjects, change: Object, **more: Any) -> RolloutPlan:
    """The plan of a merge patch, with the durations that the pods tell."""
    assert objects.ds is not None
    live = msgspec.json.decode(objects.ds, type=Object)
    new = apply_merge_patch(live, change)
    durations = read_durations(decode_daemonset(live), objects.pods, {})
    timing = simulated_timing(durations, live, new)
    return plan_rollout(
        PlanRequest(new=new, objects=objects, namespace="default", timing=timing, **more)
    )


def order(plan: RolloutPlan) -> list[str]:
    touched = [each for each in plan.nodes if each.order is not None]
    return [each.node for each in sorted(touched, key=lambda each: each.order or 0)]


def of_node(plan: RolloutPlan, name: str) -> NodePlan:
    [found] = [each for each in plan.nodes if each.node == name]
    return found


def actions(plan: RolloutPlan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in plan.nodes:
        found.setdefault(each.action.value, []).append(each.node.removeprefix("node-00"))
    return found


class Rolled(msgspec.Struct):
    """A change that was planned, and then made."""

    objects: StoredObjects
    order: list[str]
    seconds: float


def roll_out(
    manifest: Object, change: Object, *, nodes: int, slow: int = 0, half: int = 0
) -> Rolled:
    """Install, update once so that pods tell their durations, read, and make the change.

    Every `slow`th node takes twice as long. With `half`, the first update is read and changed when
    that number of nodes is updated.
    """

    async def scenario(cluster: VirtualCluster) -> Rolled:
        for number in range(slow, nodes + 1, slow) if slow else ():
            await cluster.patch_node(f"node-{number:04}", SLOW)
        await cluster.create(manifest)
        await cluster.complete(manifest)
        await cluster.patch(manifest, image("agent:v2"))
        if half:
            await cluster.until(
                lambda ds: (
                    ds["status"].get("updatedNumberScheduled", 0) >= half
                    and ds["status"]["observedGeneration"] == ds["metadata"]["generation"]
                ),
                manifest,
            )
        else:
            await cluster.complete(manifest)
        objects = await cluster.stored(manifest)
        cluster.taken.clear()
        began = cluster.clock.monotonic()
        await cluster.patch(manifest, change)
        await cluster.until(is_complete, manifest)
        return Rolled(objects, list(cluster.taken), cluster.last_ready - began)

    return in_virtual_cluster(scenario, nodes=nodes, timing=TIMING)


# --- Accuracy ------------------------------------------------------------------------------------


def test_order_and_duration_on_200_nodes_are_those_of_the_rollout() -> None:
    manifest = daemonset(rolling={"maxUnavailable": "5%"})
    really = roll_out(manifest, image("agent:v3"), nodes=200, slow=7)
    plan = planned(really.objects, image("agent:v3"))
    assert order(plan) == really.order
    assert len(really.order) == 200
    assert plan.forecast.seconds == pytest.approx(really.seconds, rel=0.15)


def test_order_and_duration_of_a_half_done_rollout_that_is_replaced() -> None:
    manifest = daemonset(rolling={"maxUnavailable": 2}, min_ready=5)
    really = roll_out(manifest, image("agent:v3"), nodes=30, half=11)
    plan = planned(really.objects, image("agent:v3"))
    assert order(plan) == really.order
    assert plan.forecast.seconds == pytest.approx(really.seconds, rel=0.15)


def test_order_and_duration_of_a_half_done_rollout_that_goes_on() -> None:
    manifest = daemonset(rolling={"maxUnavailable": 3})
    really = roll_out(manifest, {}, nodes=30, half=12)
    plan = planned(really.objects, {})
    assert plan.forecast.ending == "complete"
    assert set(order(plan)) <= set(really.order)
    assert plan.forecast.seconds == pytest.approx(really.seconds, rel=0.15)
    current = [each for each in plan.nodes if each.action is NodeAction.CURRENT]
    assert len(current) >= 12


def test_the_native_kind_and_updates_in_place_are_planned_as_they_go() -> None:
    native = daemonset(rolling={"maxUnavailable": 2}, api_version="apps/v1")
    really = roll_out(native, image("agent:v3"), nodes=12)
    assert order(planned(really.objects, image("agent:v3"))) == really.order

    rolling = {"maxUnavailable": 2, "rollingUpdateType": "InPlaceIfPossible"}
    really = roll_out(daemonset(rolling=rolling), image("agent:v3"), nodes=12)
    plan = planned(really.objects, image("agent:v3"))
    assert order(plan) == really.order
    assert {each.action for each in plan.nodes} == {NodeAction.IN_PLACE}
    assert plan.nodes[0].reason == "only the image of agent changes"
    assert plan.forecast.seconds == pytest.approx(really.seconds, rel=0.15)


def test_a_half_done_rollout_in_place_goes_on_as_it_does() -> None:
    rolling = {"maxUnavailable": 2, "rollingUpdateType": "InPlaceIfPossible"}
    really = roll_out(daemonset(rolling=rolling), {}, nodes=12, half=5)
    plan = planned(really.objects, {})
    assert set(order(plan)) <= set(really.order)
    assert plan.forecast.seconds == pytest.approx(really.seconds, rel=0.15)


# --- States --------------------------------------------------------------------------------------


def installed(manifest: Object, *nodes: tuple[str, Object], count: int = 6) -> StoredObjects:
    """A cluster with a complete DaemonSet, after some nodes were changed."""

    async def scenario(cluster: VirtualCluster) -> StoredObjects:
        await cluster.create(manifest)
        await cluster.complete(manifest)
        for name, body in nodes:
            await cluster.patch_node(name, body)
        await cluster.clock.sleep(90.0)
        return await cluster.stored(manifest)

    return in_virtual_cluster(scenario, nodes=count, timing=TIMING)


def test_silent_nodes_wait_and_nodes_that_are_not_ready_fail() -> None:
    everywhere = {"tolerations": [{"operator": "Exists"}]}
    manifest = daemonset(rolling={"maxUnavailable": 2}, template=everywhere)
    objects = installed(manifest, ("node-0002", STOPPED), ("node-0004", NOT_READY))
    plan = planned(objects, image("agent:v2"))
    assert plan.forecast.ending == "incomplete"
    assert plan.forecast.silent == ("node-0002",)
    assert plan.forecast.stuck == ("node-0004",)
    silent = of_node(plan, "node-0002")
    assert (silent.action, silent.order) == (NodeAction.WAITS, None)
    assert "kubelet is silent" in silent.reason
    sick = of_node(plan, "node-0004")
    assert (sick.action, sick.stuck, sick.available) == (NodeAction.RECREATE, True, None)


def test_a_recording_shows_all_silent_nodes_as_silent() -> None:
    """Also those that are tainted for it, keep their pod, and should have none."""
    objects = installed(daemonset(), ("node-0002", STOPPED))
    plan = planned(objects, image("agent:v2"))
    assert of_node(plan, "node-0002").action is NodeAction.NOT_ELIGIBLE
    assert plan.recording.start["node-0002"] is NodeState.UNREACHABLE


def test_nodes_that_were_tainted_keep_their_pods() -> None:
    taint = {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    plan = planned(installed(daemonset(), ("node-0002", taint)), image("agent:v2"))
    kept = of_node(plan, "node-0002")
    assert kept.action is NodeAction.NOT_ELIGIBLE
    assert kept.reason == "taint gpu:NoSchedule is not tolerated; its pod stays"
    assert (plan.forecast.ending, plan.forecast.nodes) == ("complete", 5)


def test_a_template_that_wants_other_nodes_removes_and_creates_pods() -> None:
    manifest = daemonset(template={"nodeSelector": {"kubernetes.io/os": "linux"}})
    labelled = {"metadata": {"labels": {"disk": "ssd"}}}
    objects = installed(manifest, ("node-0003", labelled))
    wanted = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}
    plan = planned(objects, wanted)
    assert actions(plan) == {"recreate": ["03"], "remove": ["01", "02", "04", "05", "06"]}
    assert "disk" in of_node(plan, "node-0001").reason


def test_held_nodes_say_by_what() -> None:
    partitioned = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 4}}}}
    objects = installed(daemonset())
    plan = planned(objects, {**image("agent:v2"), "spec": {**image("agent:v2")["spec"]}})
    assert plan.forecast.ending == "complete"
    change = apply_merge_patch(image("agent:v2"), partitioned)
    plan = planned(objects, change)
    assert actions(plan) == {"held": ["01", "02", "03", "04"], "recreate": ["05", "06"]}
    assert of_node(plan, "node-0001").reason == "partition 4 keeps 4 nodes back, the first by name"
    on_delete = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    plan = planned(objects, apply_merge_patch(image("agent:v2"), on_delete))
    assert actions(plan) == {"held": ["01", "02", "03", "04", "05", "06"]}
    assert "OnDelete" in of_node(plan, "node-0001").reason


def test_nothing_happens_where_nothing_changes() -> None:
    plan = planned(installed(daemonset()), {})
    assert plan.forecast.ending == "unchanged"
    assert order(plan) == []
    assert {each.action for each in plan.nodes} == {NodeAction.CURRENT}


def test_pods_that_crash_go_on_until_the_new_version_comes() -> None:
    """A half-done rollout of a bad version holds at its budget; a good one cures it first."""
    manifest = daemonset(rolling={"maxUnavailable": 2})

    async def scenario(cluster: VirtualCluster) -> StoredObjects:
        await cluster.create(manifest)
        await cluster.complete(manifest)
        await cluster.patch(manifest, image("agent:crash-loop"))
        await cluster.clock.sleep(120.0)
        return await cluster.stored(manifest)

    objects = in_virtual_cluster(scenario, nodes=6, timing=TIMING)
    stays = planned(objects, {})
    assert stays.forecast.ending == "stopped"
    assert order(stays) == []
    cured = planned(objects, image("agent:v3"))
    assert cured.forecast.ending == "complete"
    assert set(order(cured)[:2]) == {"node-0005", "node-0006"}


def test_what_a_template_refers_to_is_taken_to_be_there() -> None:
    pod = {"serviceAccountName": "special", "priorityClassName": "system-node-critical"}
    plan = planned(
        installed(daemonset()),
        {"spec": {"template": {"spec": {**pod, "priorityClassName": "agents"}}}},
    )
    assert plan.forecast.ending == "complete"


def test_a_first_installation_is_planned_on_the_nodes_that_exist() -> None:
    objects = msgspec.structs.replace(installed(daemonset()), ds=None, pods=(), revisions=())
    new = daemonset("other", template={"nodeSelector": {"topology.kubernetes.io/zone": "zone-b"}})
    plan = plan_rollout(PlanRequest(new=new, objects=objects, namespace="default", timing=TIMING))
    assert actions(plan) == {"create": ["02", "05"], "not-eligible": ["01", "03", "04", "06"]}
    assert plan.forecast.ending == "complete"


def test_a_change_that_an_api_server_refuses_is_no_plan() -> None:
    objects = installed(daemonset())
    with pytest.raises(ForecastError, match="immutable"):
        planned(objects, {"spec": {"selector": {"matchLabels": {"app": "other"}}}})
