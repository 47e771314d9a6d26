from __future__ import annotations

from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import play

MANIFESTS = (daemonset(rolling={"maxUnavailable": 1}),)


def test_a_world_without_components_does_not_settle() -> None:
    result, _ = play(Plan(1, nodes=2, manifests=MANIFESTS, controllers=0, patience=30.0))
    assert [each.promise for each in result.violations] == ["L1"]


def test_a_rollout_keeps_every_promise_and_takes_as_long_as_its_pods() -> None:
    update = Action("set-image", at=30.0, args={"image": "agent:v2"})
    timing = Timing(pull=0.0, start=20.0, stop=10.0)
    plan = Plan(1, nodes=3, manifests=MANIFESTS, timing=timing, actions=(update,), quiet_at=40.0)
    result, world = play(plan)
    assert result.kept, result.violations
    pods = list(world.record.cluster.pods.values())
    assert [pod.spec.containers[0].image for pod in pods] == ["agent:v2"] * 3
    assert 90.0 < world.record.changed_at - 30.0 < 95.0


def test_actions_are_counted_by_name_and_by_fault() -> None:
    freeze = Action("freeze", at=5.0, seconds=20.0, fault="F4")
    plan = Plan(1, nodes=1, manifests=MANIFESTS, actions=(freeze,), quiet_at=30.0)
    result, _ = play(plan)
    assert result.kept, result.violations
    assert result.fault_counts == {"F4": 1, "freeze": 1}


def test_a_pod_that_is_written_off_while_it_is_being_deleted_goes() -> None:
    actions = (
        Action("delete-pod", at=10.0, args={"node": 0}),
        Action("fail-pod", at=12.0, args={"node": 0}),
    )
    plan = Plan(
        1,
        nodes=1,
        manifests=MANIFESTS,
        timing=Timing(stop=8.0),
        actions=actions,
        quiet_at=20.0,
        patience=100.0,
    )
    result, world = play(plan)
    assert result.kept, result.violations
    assert len(world.record.cluster.pods) == 1
