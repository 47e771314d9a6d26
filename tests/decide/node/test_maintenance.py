from __future__ import annotations

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import IntOrPercent, UpdateStrategy
from everynode.api.objects import Node, NodeCondition, Pod
from everynode.decide.node import reasons
from everynode.decide.node.assessment import Queue
from everynode.decide.view import NodeView
from tests.support.fleet import NEW, NOW, OLD, acts, assess, make, node, pod, see

ASIDE = [each for each in keys.NODE_LIFECYCLE if each != keys.MAINTENANCE_PLANNED]


def marked(name: str, *conditions: str, status: str = "True", ready: str = "True") -> Node:
    found = node(name, ready=ready)
    said = tuple(NodeCondition(each, status) for each in conditions)
    with_conditions = msgspec.structs.replace(
        found.status, conditions=(*found.status.conditions, *said)
    )
    return msgspec.structs.replace(found, status=with_conditions)


def maintained(name: str, condition: str = "MaintenanceInProgress") -> NodeView:
    return see(marked(name, condition), pod(OLD, on=name, ready=False))


def old(name: str) -> NodeView:
    return see(name, pod(OLD, on=name))


def ended(name: str, reason: str, at: float) -> Pod:
    made = pod(NEW, on=name, phase="Failed", created=at)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, reason=reason))


@pytest.mark.parametrize("condition", ASIDE)
def test_a_node_in_maintenance_is_left_alone_and_named(condition: str) -> None:
    made = assess(make(), maintained("n1", condition))
    assert (made.queue, made.reason.code) == (Queue.NONE, reasons.MAINTENANCE)
    assert condition in made.reason.text
    assert acts(make(), maintained("n9", condition), old("n1")) == ["delete n1 agent-n1-v1 Update"]


@pytest.mark.parametrize("status", ["False", "Unknown", "yes", ""])
def test_only_true_counts(status: str) -> None:
    view = see(marked("n9", *keys.NODE_LIFECYCLE, status=status), pod(OLD, on="n9"))
    assert acts(make(), view, old("n1")) == ["delete n9 agent-n9-v1 Update"]


def test_planned_maintenance_is_taken_last() -> None:
    planned = see(marked("n9", keys.MAINTENANCE_PLANNED), pod(OLD, on="n9"))
    assert acts(make(), planned, old("n1")) == ["delete n1 agent-n1-v1 Update"]
    assert acts(make(), planned) == ["delete n9 agent-n9-v1 Update"]
    both = UpdateStrategy(max_unavailable=IntOrPercent(2))
    assert acts(make(strategy=both), planned, old("n1")) == [
        "delete n1 agent-n1-v1 Update",
        "delete n9 agent-n9-v1 Update",
    ]


def test_planned_maintenance_surges_last() -> None:
    surge = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
    planned = see(marked("n9", keys.MAINTENANCE_PLANNED), pod(OLD, on="n9"))
    [made] = acts(make(strategy=surge), planned, old("n1"))
    assert made.startswith("create n1 ")


def test_the_most_urgent_condition_decides() -> None:
    assert marked("n1", keys.MAINTENANCE_PLANNED, "Drained").lifecycle == "Drained"
    assert marked("n1", *keys.NODE_LIFECYCLE).lifecycle == keys.NODE_SHUTDOWN


def test_too_many_nodes_in_maintenance_count() -> None:
    assert acts(make(), maintained("n8"), maintained("n9"), old("n1"), old("n2")) == []


def test_288_nodes_with_20_in_maintenance_finish_on_the_others() -> None:
    plan = make(strategy=UpdateStrategy(max_unavailable=IntOrPercent(5, percent=True)))
    aside = [maintained(f"m{number:03d}") for number in range(20)]
    views = {f"n{number:03d}": old(f"n{number:03d}") for number in range(268)}
    rounds = []
    while taken := [each.split()[1] for each in acts(plan, *aside, *views.values())]:
        rounds.append(len(taken))
        for name in taken:
            views[name] = see(name, pod(NEW, on=name, created=NOW - 100))
    assert (sum(rounds), max(rounds)) == (268, 15)


def test_no_pod_is_created_on_a_node_that_shuts_down() -> None:
    shuts_down = marked("n1", keys.NODE_SHUTDOWN, ready="False")
    assert assess(make(), see(shuts_down)).reason.code == reasons.MAINTENANCE
    assert acts(make(), see(shuts_down)) == []
    assert len(acts(make(), see(marked("n1", "MaintenanceInProgress")))) == 1


@pytest.mark.parametrize("reason", ["Terminated", "NodeShutdown"])
def test_a_shutdown_that_no_condition_announces_is_waited_for(reason: str) -> None:
    gone = ended("n1", reason, NOW - 299)
    plan = make()
    assert acts(plan, see(node("n1", ready="False"), gone)) == []
    assert assess(plan, see(node("n1", ready="False"), gone)).wake_at == NOW + 1
    assert len(acts(plan, see(node("n1", ready="False"), gone), now=NOW + 1)) == 1
    assert len(acts(plan, see("n1", gone))) == 1  # it is Ready again: the ordinary back-off
    other = ended("n1", "Evicted", NOW - 299)
    assert len(acts(plan, see(node("n1", ready="False"), other))) == 1
