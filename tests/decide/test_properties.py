from __future__ import annotations

import random
import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from everynode.api.daemonset import (
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    LabelSelector,
    LifecycleHook,
    RollingUpdateType,
    UpdateStrategy,
)
from everynode.decide.actions import Cause, CreatePod, DeletePod, PodAction
from everynode.decide.decision import Decision
from everynode.decide.ledger import Ledger
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue
from everynode.decide.plan import Plan
from everynode.decide.view import NodeView
from tests.support.fleet import GPU, NEW, NOW, OLD, World, is_ready, make, node, said_of
from tests.support.oracle import DecisionOracle

CANARY = LabelSelector({"canary": "yes"})
NAMES = [f"n{i}" for i in range(6)]

amounts = st.builds(IntOrPercent, st.integers(1, 3)) | st.builds(
    IntOrPercent, st.sampled_from([10, 30, 50]), st.just(True)
)
partitions = st.builds(IntOrPercent, st.integers(0, 5)) | st.builds(
    IntOrPercent, st.sampled_from([0, 20, 50, 100]), st.just(True)
)
standard = st.builds(
    UpdateStrategy,
    max_unavailable=amounts,
    partition=partitions,
    selector=st.sampled_from([None, None, CANARY]),
    paused=st.sampled_from([False, False, True]),
    rolling=st.sampled_from([RollingUpdateType.STANDARD, RollingUpdateType.IN_PLACE]),
)
surging = st.builds(
    UpdateStrategy,
    max_unavailable=st.just(IntOrPercent(0)),
    max_surge=amounts,
    partition=partitions,
    selector=st.sampled_from([None, None, CANARY]),
)
plans = st.builds(
    make,
    strategy=standard | surging,
    flavour=st.sampled_from([Flavour.NATIVE, Flavour.ADVANCED]),
    min_ready_seconds=st.sampled_from([0, 0, 30]),
    pre_delete=st.sampled_from([None, None, LifecycleHook(labels={"app": "agent"})]),
    from_hash=st.sampled_from([OLD, OLD, OLD, None]),
    progressive=st.booleans(),
    burst=st.sampled_from([IntOrPercent(250), IntOrPercent(2), IntOrPercent(10, True)]),
)

KINDS = [
    "decide", "decide", "decide", "decide", "wait", "wait long", "wait long",
    "show", "flow", "flow", "flow", "storm",
    "ready", "ready", "unready",
    "fail", "end", "end", "kill", "release", "silent", "speak", "speak", "not ready", "taint",
    "untaint", "label", "join", "leave",
]  # fmt: skip
events = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 31)), min_size=5, max_size=40)
FAST = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def happen(world: World, kind: str, number: int, *, bad: bool = False) -> None:
    """Apply one event of pods, nodes, users or clocks; pods of a bad target are never Ready."""
    names = sorted(world.nodes)
    uids = sorted(world.pods)
    name = names[number % len(names)] if names else ""
    uid = uids[number % len(uids)] if uids else ""
    if kind in ("wait", "wait long"):
        world.now += number + 1 if kind == "wait" else 400
    elif kind == "join":
        world.nodes[NAMES[number % len(NAMES)]] = node(NAMES[number % len(NAMES)])
        world.tell(NAMES[number % len(NAMES)])
    elif kind in ("flow", "storm"):
        for each in uids:
            if kind == "storm":
                world.run(each, ready=False)
            else:
                world.end(each)
        for each in sorted({*world.nodes, *world.shown}):
            world.show(each)
    elif kind == "show" and name:
        world.show(name)
    elif kind in ("silent", "speak", "not ready", "taint", "untaint", "label", "leave") and name:
        change_node(world, kind, name)
    elif uid:
        change_pod(world, kind, uid, bad=bad)


def change_node(world: World, kind: str, name: str) -> None:
    found = world.nodes[name]
    labels = dict(found.metadata.labels)
    ready, taints = found.ready, found.spec.taints
    if kind == "leave":
        del world.nodes[name]
        world.tell(name)
        return
    if kind == "label":
        labels = {} if labels else {"canary": "yes"}
    elif kind in ("taint", "untaint"):
        taints = (GPU,) if kind == "taint" else ()
    else:
        ready = {"silent": "Unknown", "speak": "True", "not ready": "False"}[kind]
    world.nodes[name] = node(name, ready=ready, labels=labels, taints=taints)
    world.tell(name)


def change_pod(world: World, kind: str, uid: str, *, bad: bool) -> None:
    found = world.pods[uid]
    if kind == "ready":
        world.run(uid, ready=not (bad and world.plan.is_at_target(found)))
    elif kind == "unready":
        world.run(uid, ready=False)
    elif kind == "fail":
        world.fail(uid)
    elif kind == "end":
        world.end(uid)
    elif kind == "kill":
        world.kill(uid)
    elif kind == "release":
        labels = {k: v for k, v in found.metadata.labels.items() if k != "app"}
        meta = msgspec.structs.replace(found.metadata, labels=labels)
        world.pods[uid] = msgspec.structs.replace(found, metadata=meta)


def play(world: World, script: list[tuple[str, int]], status: DaemonSetStatus) -> DaemonSetStatus:
    """Play the events, and check every decision."""
    for kind, number in script:
        if kind != "decide":
            happen(world, kind, number)
            continue
        status = decide_and_check(world, status, number).status
    return status


def decide_and_check(world: World, status: DaemonSetStatus, seed: int) -> Decision:
    views = world.views()
    oracle = DecisionOracle(world.plan, views, world.now)
    random.Random(seed).shuffle(views)
    fresh = Ledger(world.plan, views).decide(world.now, status)
    decision = world.decide(status)
    assert decision == fresh
    oracle.check(decision.actions)
    check_ledger(world, decision)
    return decision


def check_ledger(world: World, decision: Decision) -> None:
    """Check that no unfinished node counts as done and that the condition names stuck nodes."""
    progressing = said_of(decision, "Progressing")
    if progressing.reason != "NewRevisionAvailable":
        check_count(progressing.message, decision.status)
    for made in world.ledger.assessments():
        view = world.ledger._views[made.name]
        groups = made.counts.updated, made.counts.held, made.counts.not_started
        assert sum(groups) <= made.counts.desired, made
        if made.counts.desired and not (made.counts.updated and made.counts.available):
            assert made.reason.code != reasons.DONE, made
        stuck = made.reason.code not in reasons.IDLE_CODES | reasons.PROGRESSING_CODES
        if stuck and progressing.reason != "NewRevisionAvailable":
            assert made.reason.code in progressing.message
        if view.writes:
            assert made.queue is Queue.NONE


def check_count(message: str, status: DaemonSetStatus) -> None:
    """A condition counts every node that should have a pod, once."""
    count = message.rpartition("; ")[2]
    parts = re.fullmatch(r"of (\d+) nodes? (.+)", count)
    assert parts is not None, message
    numbers = [int(part.split()[0]) for part in parts[2].split(", ")]
    assert min(numbers) >= 0, message
    assert sum(numbers) == int(parts[1]) == status.desired, message
    assert numbers[0] <= min(status.updated, status.available)


# Chance takes long to find these: a cure that waits for its first patient, and then no longer.
REPLACE_UNREADY = [
    "storm",
    "decide",
    "flow",
    "decide",
    "flow",
    "decide",
    "wait long",
    "decide",
    "decide",
]
# A target that silences the kubelets of the nodes it comes to.
VICTIM = ["decide", "flow", "decide", "flow", "silent", "decide"]


@given(plans, events)
@example(make(), [(kind, 0) for kind in REPLACE_UNREADY])
@example(make(min_ready_seconds=30), [("decide", 0), ("wait", 25), ("decide", 0)])
@FAST
def test_no_decision_breaks_scope_or_budget_and_a_fresh_ledger_decides_the_same(
    plan: Plan, script: list[tuple[str, int]]
) -> None:
    world = World(plan, NAMES[:4])
    play(world, script, DaemonSetStatus())


@given(plans, events, events)
@example(  # a node whose pod of the target died keeps its place in a first installation
    plan=make(
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(1), partition=IntOrPercent(1)),
        flavour=Flavour.NATIVE,
        from_hash=None,
        progressive=True,
    ),
    before=[("decide", 0), ("decide", 0), ("kill", 0), ("flow", 0), ("decide", 0)],
    after=[("decide", 0)] * 5,
)
@example(  # a tainted node keeps its target pod, which proves the target
    plan=make(
        strategy=UpdateStrategy(
            max_unavailable=IntOrPercent(0),
            max_surge=IntOrPercent(1),
            partition=IntOrPercent(1),
        ),
        flavour=Flavour.NATIVE,
        from_hash="v1",
    ),
    before=[("join", 17), ("decide", 0), ("fail", 0), ("taint", 1), ("join", 10)],
    after=[("decide", 0), ("decide", 0), ("flow", 0), ("silent", 8), ("decide", 0)],
)
@FAST
def test_a_change_of_plan_in_the_middle_is_like_a_new_beginning(
    plan: Plan, before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    world = World(plan, NAMES[:4], hash=NEW)
    status = play(world, before[:15], DaemonSetStatus())
    strategy = msgspec.structs.replace(plan.ds.strategy, partition=IntOrPercent(1), paused=False)
    world.plan = make(strategy=strategy, flavour=plan.ds.flavour, pre_delete=plan.ds.pre_delete)
    world.ledger.set_plan(world.plan)
    play(world, after[:15], status)


def ready_pods_taken(world: World, actions: tuple[PodAction, ...]) -> set[str]:
    """Nodes whose Ready pod goes, or is taken out of service, by these actions."""
    found = set()
    for action in actions:
        if isinstance(action, CreatePod) or action.cause is Cause.MISPLACED:
            continue
        for pod in world.shown.get(action.node, ()):
            if pod.uid == action.uid and is_ready(pod) and not pod.terminating:
                found.add(action.node)
    return found


def silent_before_the_target_ran(world: World) -> set[str]:
    """Nodes that are given back to the budget: what silenced them was not the target (R4)."""
    return {
        name
        for name, node in world.nodes.items()
        if node.ready == "Unknown"
        and not any(world.plan.is_at_target(pod) for pod in world.pods_on(name))
    }


@given(
    st.sampled_from([1, 2]),
    st.sampled_from([RollingUpdateType.STANDARD, RollingUpdateType.IN_PLACE]),
    st.sampled_from([None, LifecycleHook(labels={"app": "agent"})]),
    events,
)
@example(1, RollingUpdateType.STANDARD, None, [(kind, 4) for kind in VICTIM])
@example(
    1,
    RollingUpdateType.STANDARD,
    LifecycleHook(labels={"app": "agent"}),
    [(kind, 4) for kind in ("decide", "decide", "flow", "silent", "decide")],
)
@FAST
def test_a_bad_target_never_takes_more_ready_pods_than_may_be_unavailable(
    limit: int,
    rolling: RollingUpdateType,
    hook: LifecycleHook | None,
    script: list[tuple[str, int]],
) -> None:
    strategy = UpdateStrategy(max_unavailable=IntOrPercent(limit), rolling=rolling)
    plan = make(strategy=strategy, flavour=Flavour.ADVANCED, pre_delete=hook)
    world = World(plan, NAMES[:5])
    taken: set[str] = set()
    for kind, number in script:
        if kind in ("leave", "taint", "untaint"):
            continue  # a node that may not have a pod any more is given back to the budget
        if kind != "decide":
            happen(world, kind, number, bad=True)
            taken -= silent_before_the_target_ran(world)
            continue
        decision = world.ledger.decide(world.now, DaemonSetStatus())
        taken |= ready_pods_taken(world, decision.actions)
        assert len(taken) <= limit, f"{sorted(taken)} were taken"
        for action in decision.actions:
            world.apply(action)
        for name in sorted({action.node for action in decision.actions}):
            world.tell(name)


@given(plans, events)
@FAST
def test_a_node_has_one_pod_or_with_surge_two_on_as_many_nodes_as_allowed(
    plan: Plan, script: list[tuple[str, int]]
) -> None:
    world = World(plan, NAMES[:4])
    status = DaemonSetStatus()
    for kind, number in script:
        if kind == "decide":
            status = decide_and_check(world, status, number).status
        else:
            happen(world, kind, number)
        running = {name: [pod for pod in world.pods_on(name) if not pod.finished] for name in NAMES}
        if not plan.surging:
            assert all(len(pods) <= 1 for pods in running.values())
            continue
        assert all(len(pods) <= 2 for pods in running.values())


@given(plans, st.integers(0, 999))
@FAST
def test_deciding_again_before_own_writes_are_seen_repeats_no_action(plan: Plan, seed: int) -> None:
    world = World(plan, NAMES)
    first = world.ledger.decide(world.now, DaemonSetStatus())
    second = world.ledger.decide(world.now, first.status)
    both = (*first.actions, *second.actions)
    DecisionOracle(plan, world.views(), world.now).check(both)
    assert len({(type(each), each.node) for each in both}) == len(both)


@given(plans)
@settings(FAST, max_examples=25)
def test_a_rollout_that_goes_well_ends_complete_and_quiet(plan: Plan) -> None:
    strategy = msgspec.structs.replace(
        plan.ds.strategy, partition=IntOrPercent(0), selector=None, paused=False
    )
    plan = make(strategy=strategy, flavour=plan.ds.flavour, burst=plan.ds.burst)
    world = World(plan, NAMES)
    status = DaemonSetStatus()
    for _ in range(60):
        decision = decide_and_check(world, status, 0)
        status = decision.status
        if not decision.actions and status.updated == status.available == status.desired:
            break
        world.now += 31
        world.settle()
    assert (status.updated, status.available, status.desired) == (6, 6, 6)
    last = world.decide(status)
    assert last.actions == ()
    assert last.status is status
    assert said_of(last, "Complete").status == "True"


def delete(view: NodeView, cause: Cause = Cause.UPDATE) -> DeletePod:
    found = view.pods[0]
    return DeletePod(view.name, found.name, found.uid, "1", cause)


def create(name: str, hash: str) -> CreatePod:
    return CreatePod(name, hash, f"agent-{name}-again", {}, Cause.SURGE)


HOOK = LifecycleHook(labels={"app": "agent"})
HELD = UpdateStrategy(partition=IntOrPercent(6))


@pytest.mark.parametrize(
    ("plan", "actions", "fault"),
    [
        (make(), lambda views: [delete(views[0]), delete(views[1])], "2 nodes are then down"),
        (make(strategy=HELD), lambda views: [delete(views[0])], "the node is held"),
        (make(strategy=HELD), lambda views: [create("n0", NEW)], "another revision"),
        (make(), lambda views: [create("n0", NEW)], "have two pods"),
        (make(pre_delete=HOOK), lambda views: [delete(views[0])], "is held by its hook"),
    ],
    ids=["maxUnavailable", "partition", "revision of a held node", "two pods", "hook"],
)
def test_the_oracle_rejects_a_decision_that_breaks_a_rule(
    plan: Plan, actions: Callable[[list[NodeView]], list[PodAction]], fault: str
) -> None:
    views = World(plan, NAMES).views()
    with pytest.raises(AssertionError, match=fault):
        DecisionOracle(plan, views, NOW).check(actions(views))
