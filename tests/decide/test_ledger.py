from __future__ import annotations

import msgspec

from everynode.api.daemonset import DaemonSetStatus, FieldError, IntOrPercent, UpdateStrategy
from everynode.api.objects import Pod, PodMeta
from everynode.decide.ledger import Ledger
from everynode.decide.node import reasons
from everynode.decide.node.steps import to_own_write
from everynode.decide.view import NodeView
from tests.support.fleet import (
    NEW,
    NOW,
    OLD,
    acts,
    assessment_of,
    brief,
    decide,
    make,
    node,
    pod,
    revision,
    said_of,
    see,
    template,
)

NOTHING = DaemonSetStatus()


def missing(count: int) -> list[NodeView]:
    return [see(f"n{i}") for i in range(count)]


# --- Order and pace ----------------------------------------------------------------------------


def test_creates_go_by_name_and_before_everything_else() -> None:
    views = [see("n9"), see("n1"), see("n5", pod(OLD, on="n5")), see("n3", pod(OLD, on="n3"))]
    assert acts(make(strategy=UpdateStrategy(max_unavailable=IntOrPercent(4))), *views) == [
        "create n1 v2 Missing",
        "create n9 v2 Missing",
        "delete n5 agent-n5-v1 Update",
        "delete n3 agent-n3-v1 Update",
    ]


def test_a_burst_bounds_creates() -> None:
    assert len(acts(make(burst=IntOrPercent(2)), *missing(5))) == 2


def test_a_burst_in_percent_is_of_desired_rounded_down_and_one_at_least() -> None:
    assert len(acts(make(burst=IntOrPercent(50, True)), *missing(5))) == 2
    assert len(acts(make(burst=IntOrPercent(1, True)), *missing(5))) == 1
    assert len(acts(make(burst=IntOrPercent(0)), *missing(5))) == 1


def test_a_burst_counts_what_is_under_way() -> None:
    ledger = Ledger(make(burst=IntOrPercent(2)), missing(5))
    first = ledger.decide(NOW, NOTHING)
    assert len(first.actions) == 2
    assert ledger.decide(NOW, NOTHING).actions == ()
    done = first.actions[0].node
    ledger.observe(see(done, pod(NEW, on=done)))
    assert len(ledger.decide(NOW, NOTHING).actions) == 1


def test_a_burst_bounds_deletes() -> None:
    olds = [see(f"n{i}", pod(OLD, on=f"n{i}")) for i in range(5)]
    strategy = UpdateStrategy(max_unavailable=IntOrPercent(5))
    assert len(acts(make(strategy=strategy, burst=IntOrPercent(2)), *olds)) == 2


def test_a_burst_counts_deletes_under_way() -> None:
    olds = [see(f"n{i}", pod(OLD, on=f"n{i}")) for i in range(5)]
    strategy = UpdateStrategy(max_unavailable=IntOrPercent(5))
    ledger = Ledger(make(strategy=strategy, burst=IntOrPercent(2)), olds)
    assert len(ledger.decide(NOW, NOTHING).actions) == 2
    assert ledger.decide(NOW, NOTHING).actions == ()


def test_a_slow_start_bounds_creates_further() -> None:
    assert len(acts(make(), *missing(5), create_limit=1)) == 1
    assert acts(make(), *missing(5), create_limit=0) == []


def test_a_slow_start_goes_on_as_soon_as_more_creates_are_allowed() -> None:
    ledger = Ledger(make(), missing(3))
    assert [len(ledger.decide(NOW, NOTHING, create_limit=n).actions) for n in (0, 0, 1, 1, 3)] == [
        *(0, 0, 1),
        *(0, 2),
    ]


# --- Own actions -------------------------------------------------------------------------------


def test_healing_creates_the_missing_pods_of_the_named_nodes_and_nothing_else() -> None:
    views = [see("n1"), see("n2"), see("n3", pod(OLD, on="n3")), see("n4", pod(OLD, on="n4"))]
    ledger = Ledger(make(strategy=UpdateStrategy(max_unavailable=IntOrPercent(4))), views)
    assert ledger.missing(NOW) == ["n1", "n2"]
    healed = ledger.decide(NOW, NOTHING, heal_only=frozenset({"n2", "n3"}))
    assert brief(healed.actions) == ["create n2 v2 Missing"]
    assert ledger.missing(NOW) == ["n1"]
    later = ledger.decide(NOW, NOTHING)
    assert brief(later.actions)[0] == "create n1 v2 Missing"
    assert len(later.actions) == 3


def test_deciding_again_before_own_writes_are_seen_takes_no_more_pods() -> None:
    olds = [see(f"n{i}", pod(OLD, on=f"n{i}")) for i in range(3)]
    ledger = Ledger(make(), olds)
    assert len(ledger.decide(NOW, NOTHING).actions) == 1
    assert ledger.decide(NOW, NOTHING).actions == ()


def test_an_action_that_came_to_nothing_is_tried_again() -> None:
    view = see("n1")
    ledger = Ledger(make(), [view])
    [action] = ledger.decide(NOW, NOTHING).actions
    ledger.observe(msgspec.structs.replace(view, writes=(to_own_write(action),)))
    assert ledger.decide(NOW, NOTHING).actions == ()
    ledger.observe(view)
    assert ledger.decide(NOW, NOTHING).actions == (action,)


# --- Changes -----------------------------------------------------------------------------------


def test_a_forgotten_node_counts_no_more() -> None:
    ledger = Ledger(make(), [see("n1", pod(NEW)), see("n2", pod(NEW, on="n2"))])
    assert ledger.decide(NOW, NOTHING).status.desired == 2
    ledger.forget("n2")
    ledger.forget("n7")
    assert ledger.decide(NOW, NOTHING).status.desired == 1
    assert [each.name for each in ledger.assessments()] == ["n1"]


def test_a_node_that_vanishes_leaves_the_scope() -> None:
    strategy = UpdateStrategy(partition=IntOrPercent(1), max_unavailable=IntOrPercent(9))
    views = [see(f"n{i}", pod(OLD, on=f"n{i}")) for i in range(3)]
    ledger = Ledger(make(strategy=strategy), views)
    assert brief(ledger.decide(NOW, NOTHING).actions) == [
        "delete n2 agent-n2-v1 Update",
        "delete n1 agent-n1-v1 Update",
    ]
    ledger.observe(NodeView("n2", None, (pod(OLD, on="n2"),)))
    assert ledger.decide(NOW, NOTHING).status.desired == 2
    assert assessment_of(ledger, "n1").in_scope


def test_a_new_plan_evaluates_every_node_again_and_an_equal_one_none() -> None:
    ledger = Ledger(make(strategy=UpdateStrategy(paused=True)), [see("n1", pod(OLD))])
    assert ledger.decide(NOW, NOTHING).actions == ()
    before = assessment_of(ledger, "n1")
    ledger.set_plan(make(strategy=UpdateStrategy(paused=True)))
    assert assessment_of(ledger, "n1") is before
    ledger.set_plan(make())
    assert len(ledger.decide(NOW, NOTHING).actions) == 1


def test_assessments_come_by_name() -> None:
    ledger = Ledger(make(), [see("n2"), see("n1")])
    ledger.decide(NOW, NOTHING)
    assert [made.name for made in ledger.assessments()] == ["n1", "n2"]


# --- Time --------------------------------------------------------------------------------------


def test_the_next_reconcile_is_when_something_changes_with_time() -> None:
    plan = make(min_ready_seconds=60)
    views = [
        see("n1", pod(NEW, since=NOW - 20)),
        see("n2", pod(NEW, on="n2", since=NOW - 50)),
        see("n3", pod(NEW, on="n3")),
    ]
    ledger = Ledger(plan, views)
    first = ledger.decide(NOW, NOTHING)
    assert (first.wake_at, first.status.available) == (NOW + 10, 1)
    second = ledger.decide(NOW + 10, first.status)
    assert (second.wake_at, second.status.available) == (NOW + 40, 2)
    third = ledger.decide(NOW + 40, second.status)
    assert (third.wake_at, third.status.available) == (None, 3)


# --- Conditions -------------------------------------------------------------------------------


def test_at_rest_nothing_is_written() -> None:
    ledger = Ledger(make(), [see("n1", pod(NEW))])
    first = ledger.decide(NOW, NOTHING)
    again = ledger.decide(NOW + 1000, first.status)
    assert again.actions == ()
    assert again.status is first.status
    assert again.wake_at is None


def test_conditions_changed_by_another_client_are_restored_though_no_node_changed() -> None:
    ledger = Ledger(make(), [see("n1", pod(NEW))])
    ours = ledger.decide(NOW, NOTHING).status
    assert ledger.decide(NOW, ours).status is ours
    spoilt = msgspec.structs.replace(ours, conditions=ours.conditions[1:], ready=7)
    mended = ledger.decide(NOW + 1, spoilt).status
    assert mended.ready == 1
    assert {each.type for each in mended.conditions} == {each.type for each in ours.conditions}
    assert ledger.decide(NOW + 2, ours).status is ours


def test_a_stuck_rollout_says_what_it_waits_for() -> None:
    views = [
        see("n1", pod(OLD)),
        see("n2", pod(NEW, on="n2", waiting="ImagePullBackOff")),
        see(node("n3", ready="Unknown"), pod(OLD, on="n3", ready=False)),
    ]
    decision = decide(make(), views)
    assert decision.actions == ()
    said = said_of(decision, "Progressing")
    assert said.status == "False"
    assert said.message == (
        "2 nodes wait: 1 ImagePullBackOff (n2), 1 NodeNotReady (n3); "
        "of 3 nodes 0 updated and available, 1 under way, 2 to come"
    )


def test_every_node_is_counted_once_whether_new_pods_come_before_or_after_the_old_ones_go() -> None:
    views = [
        see("n1", pod(OLD)),
        see("n2", pod(OLD, on="n2", deleting=NOW)),
        see("n3", pod(OLD, on="n3", deleting=NOW), pod(NEW, on="n3", created=NOW - 1)),
        see("n4", pod(NEW, on="n4", created=NOW - 1, waiting="ContainerCreating")),
    ]
    for strategy in (
        UpdateStrategy(),
        UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1)),
    ):
        said = said_of(decide(make(strategy=strategy), views), "Progressing")
        assert said.message == "of 4 nodes 0 updated and available, 3 under way, 1 to come"


def test_what_is_wrong_with_the_daemonset_is_said_once() -> None:
    plan = make(faults=(FieldError("spec.burstReplicas", "is no number"),))
    first = decide(plan, [])
    assert [notice.reason for notice in first.notices] == ["Faulty"]
    assert said_of(first, "Faulty").message == "spec.burstReplicas: is no number"
    assert decide(plan, [], status=first.status).notices == ()


def test_a_node_is_available_by_either_of_its_pods() -> None:
    surge = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
    going = pod(OLD, deleting=NOW + 30, created=NOW - 500)
    decision = decide(make(strategy=surge), [see("n1", going, pod(NEW, created=NOW - 100))])
    assert decision.status.available == 0  # counted by the oldest pod, as the peers do
    assert said_of(decision, "Available").status == "True"


def test_a_surge_that_cannot_fit_is_reported() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}]
    made = template(containers=[{"name": "agent", "image": "a", "ports": ports}])
    plan = make(
        strategy=UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1)),
        old=revision(OLD, template=made),
        new=revision(NEW, template=made),
    )
    decision = decide(plan, [see("n1", pod(OLD))])
    assert decision.actions == ()
    assert said_of(decision, "SurgeCannotFit").status == "True"
    assert [notice.reason for notice in decision.notices] == ["SurgeCannotFit"]


def test_kubectl_rollout_status_sees_a_finished_rollout() -> None:
    views = [see(f"n{i}", pod(NEW, on=f"n{i}")) for i in range(3)]
    status = decide(make(), views).status
    assert status.observed_generation == 2
    assert status.updated == status.available == status.desired == 3


def broken_pod(on: str) -> Pod:
    """A pod as no decoder makes it: to read its status raises."""
    made = pod(on=on)
    return Pod(metadata=made.metadata, spec=made.spec, status=None)  # type: ignore[arg-type]


def test_an_error_over_one_node_leaves_that_node_alone_and_names_it() -> None:
    plan = make()
    views = [see("n1", pod(on="n1")), see("n2", broken_pod("n2")), see("n3")]
    ledger = Ledger(plan, views)
    decision = ledger.decide(NOW, DaemonSetStatus())
    # The node that cannot be evaluated counts as down, which is all that may be down at a time.
    assert brief(decision.actions) == ["create n3 v2 Missing"]
    assert [failed.node for failed in decision.failed_nodes] == ["n2"]
    assert isinstance(decision.failed_nodes[0].error, AttributeError)
    said = assessment_of(ledger, "n2")
    assert said is not None
    assert said.reason.code == reasons.NOT_ASSESSED
    assert said.counts.down == 1
    assert "1 NotAssessed (n2)" in said_of(decision, "Progressing").message
    assert ledger.decide(NOW, decision.status).failed_nodes == ()


def test_a_node_that_could_not_be_evaluated_is_evaluated_again_when_it_changes() -> None:
    ledger = Ledger(make(), [see("n1", broken_pod("n1"))])
    assert ledger.decide(NOW, DaemonSetStatus()).actions == ()
    ledger.observe(see("n1", pod(on="n1")))
    assert brief(ledger.decide(NOW, DaemonSetStatus()).actions) == ["delete n1 agent-n1-v1 Update"]


def test_an_error_over_the_write_itself_leaves_the_budget_to_the_others() -> None:
    torn = msgspec.structs.replace(pod(on="n3"), metadata=TornMeta(pod(on="n3").metadata))
    ledger = Ledger(make(), [see("n1", pod(on="n1")), see("n3", torn)])
    decision = ledger.decide(NOW, DaemonSetStatus())
    assert [failed.node for failed in decision.failed_nodes] == ["n3"]
    assert ledger.decide(NOW, decision.status).actions == ()


class TornMeta:
    """Metadata that is whole but for the version that a delete names."""

    def __init__(self, meta: PodMeta) -> None:
        self._meta = meta

    def __getattr__(self, name: str) -> object:
        if name == "resource_version":
            raise AttributeError(name)
        return getattr(self._meta, name)


def test_a_template_that_no_longer_wants_nodes_says_how_many_pods_go() -> None:
    plan = make(new=revision(NEW, nodeSelector={"disk": "typo"}))
    decision = decide(plan, [see(name, pod(OLD, on=name)) for name in ("n1", "n2")])
    assert "removed from 2 nodes" in said_of(decision, "Progressing").message
