from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSetStatus,
    FieldError,
    IntOrPercent,
    LabelSelector,
    LabelSelectorRequirement,
    RollingUpdateType,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.decide.plan import make_plan
from tests.support.fleet import NEW, OLD, make, pod, revision, template

SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))


def test_our_own_status_write_makes_no_new_plan() -> None:
    plan = make()
    meta = msgspec.structs.replace(plan.ds.metadata, resource_version="99")
    seen = msgspec.structs.replace(
        plan.ds, status=DaemonSetStatus(desired=7, update_revision=NEW), metadata=meta
    )
    target = msgspec.structs.replace(plan.target, resource_version="12", number=4)
    again = make_plan(seen, target, [target, *plan.revisions.values()], plan.from_hash)
    assert again == plan


def test_what_decides_makes_a_new_plan() -> None:
    assert make(strategy=UpdateStrategy(paused=True)) != make()
    assert make(new=revision("v3")) != make()
    assert make(from_hash=None) != make()
    assert make(metadata={"generation": 3}) != make()
    assert make(others=[revision("v0")]) != make()
    assert make() != "a plan"


def test_only_one_way_of_updating_is_on() -> None:
    assert (make().rolling, make().updating, make().surging, make().in_place) == (
        True,
        True,
        False,
        False,
    )
    assert not make(strategy=UpdateStrategy(paused=True)).updating
    assert make(strategy=SURGE).surging
    assert make(strategy=UpdateStrategy(rolling=RollingUpdateType.IN_PLACE)).in_place
    both = msgspec.structs.replace(SURGE, rolling=RollingUpdateType.IN_PLACE)
    assert not make(strategy=both).in_place
    on_delete = make(strategy=msgspec.structs.replace(both, type=UpdateStrategyType.ON_DELETE))
    ways = (on_delete.rolling, on_delete.updating, on_delete.surging, on_delete.in_place)
    assert not any(ways)


def test_held_nodes_come_back_as_from_where_that_is_known() -> None:
    assert make().fallback_hash == OLD
    assert make(from_hash="lost").fallback_hash == NEW
    complete = msgspec.structs.replace(revision(NEW), completed=True)
    assert make(new=complete).fallback_hash == NEW
    assert not make(from_hash="lost").first_install
    assert make(from_hash=None).fallback_hash == NEW
    assert make(from_hash=None).first_install


def test_a_native_pod_is_at_the_target_by_hash_or_by_template_generation() -> None:
    target = msgspec.structs.replace(revision(NEW), target_generation=7)
    plan = make(new=target)
    assert plan.is_at_target(pod(NEW))
    assert plan.is_at_target(pod(OLD, labels={keys.POD_TEMPLATE_GENERATION: "7"}))
    assert not plan.is_at_target(pod(OLD, labels={keys.POD_TEMPLATE_GENERATION: "6"}))
    assert not plan.is_at_target(pod(OLD))


def test_no_selector_selects_every_node_and_a_wrong_one_none() -> None:
    assert make().selects({})
    some = make(strategy=UpdateStrategy(selector=LabelSelector({"a": "b"})))
    assert some.selects({"a": "b"})
    assert not some.selects({})
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement("a", "Like", ("b",)),))
    plan = make(strategy=UpdateStrategy(selector=wrong))
    assert not plan.selects({"a": "b"})
    assert [fault.path for fault in plan.faults] == ["spec.updateStrategy.rollingUpdate.selector"]


def test_the_faults_of_daemonset_and_template_are_gathered() -> None:
    known = FieldError("spec.burstReplicas", "must be a number")
    plan = make(faults=(known,), new=revision(NEW, template=b"[]"))
    assert plan.faults[0] == known
    assert plan.faults[1].path == "spec.template"


def test_a_pod_of_a_lost_revision_is_assumed_to_hold_the_targets_ports() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}]
    with_port = template(containers=[{"name": "agent", "image": "a", "ports": ports}])
    plan = make(new=revision(NEW, template=with_port))
    assert not plan.has_port_conflict(pod(OLD))
    assert plan.has_port_conflict(pod(NEW))
    assert plan.has_port_conflict(pod("lost"))
    assert not make().has_port_conflict(pod("lost"))


def test_a_target_that_is_taken_back_is_known_whatever_most_pods_had() -> None:
    old, new = revision("v1"), revision("v2")
    since = msgspec.structs.replace(old, from_hash=new.hash)
    assert not make().reverts
    assert make(from_hash=NEW).reverts  # few pods had left the target
    assert make(old=since).reverts  # most pods had the version that came after it
    assert not make(old=since, from_hash=None).reverts
