from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api.objects import Taint
from everynode.decide.node.eligibility import (
    Eligibility,
    eligibility_for,
    host_ports_conflict,
    read_constraints,
)
from tests.support.fleet import GPU, node, template

NO_EXECUTE = Taint("gpu", "true", "NoExecute")


def asked(*, on: dict[str, Any] | None = None, **spec: Any) -> Eligibility:
    return eligibility_for(read_constraints(template(**spec)), node("n1", **(on or {})))


def test_a_plain_template_wants_every_node() -> None:
    assert asked() == Eligibility(True, True)


def test_a_cordoned_node_gets_its_pod() -> None:
    taint = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    assert asked(on={"taints": (taint,), "unschedulable": True}).should_run


def test_a_node_selector_that_does_not_match_empties_the_node() -> None:
    found = asked(nodeSelector={"disk": "ssd"})
    assert found == Eligibility(False, False, "node selector disk=ssd does not match")
    assert asked(on={"labels": {"disk": "ssd"}}, nodeSelector={"disk": "ssd"}).should_run


def test_a_template_for_another_node_is_not_for_this_one() -> None:
    assert asked(nodeName="n2") == Eligibility(False, False, "the template is for node n2 only")
    assert asked(nodeName="n1").should_run


def test_an_untolerated_no_schedule_taint_lets_a_pod_stay() -> None:
    found = asked(on={"taints": (GPU,)})
    assert found == Eligibility(False, True, "taint gpu=true:NoSchedule is not tolerated")


@pytest.mark.parametrize("key", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
def test_a_node_that_an_autoscaler_deletes_keeps_its_pod_and_gets_no_new_one(key: str) -> None:
    found = asked(on={"taints": (Taint(key, "", "NoSchedule"),)})
    assert (found.should_run, found.should_continue) == (False, True)


def test_an_untolerated_no_execute_taint_lets_none_stay() -> None:
    found = asked(on={"taints": (GPU, NO_EXECUTE)})
    assert found == Eligibility(False, False, "taint gpu=true:NoExecute is not tolerated")


def test_a_toleration_lets_the_pod_onto_a_tainted_node() -> None:
    assert asked(
        on={"taints": (GPU,)}, tolerations=[{"key": "gpu", "operator": "Exists"}]
    ).should_run


@pytest.mark.parametrize(("host_network", "runs"), [(False, False), (True, True)])
def test_only_a_pod_of_the_hosts_network_goes_where_there_is_none(
    host_network: bool, runs: bool
) -> None:
    taint = Taint("node.kubernetes.io/network-unavailable", "", "NoSchedule")
    assert asked(on={"taints": (taint,)}, hostNetwork=host_network).should_run is runs


def test_preferences_and_prefer_no_schedule_do_not_count() -> None:
    assert asked(on={"taints": (Taint("gpu", "", "PreferNoSchedule"),)}).should_run


def test_an_affinity_term_that_makes_no_sense_matches_nothing() -> None:
    expression = {"key": "disk", "operator": "Like", "values": ["s*"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert asked(affinity=affinity).reason == "required node affinity does not match"
    assert read_constraints(template(affinity=affinity)).matcher.faults


@pytest.mark.parametrize(
    "broken",
    [
        b"not json",
        b"[]",
        b'{"spec": {"nodeSelector": []}}',
        b'{"spec": {"tolerations": [1]}}',
        b'{"metadata": []}',
    ],
)
def test_a_template_that_cannot_be_read_wants_no_node_and_leaves_pods_alone(broken: bytes) -> None:
    found = eligibility_for(read_constraints(broken), node("n1"))
    assert not found.should_run
    assert found.should_continue
    assert found.reason.startswith("the template cannot be read: ")


def test_nulls_in_a_template_mean_nothing() -> None:
    made = {"metadata": {"creationTimestamp": None, "labels": None}, "spec": {"nodeSelector": None}}
    assert eligibility_for(read_constraints(json.dumps(made).encode()), node("n1")).should_run


def ports(*listed: dict[str, Any], **spec: Any) -> bytes:
    return template(containers=[{"name": "agent", "image": "a", "ports": list(listed)}], **spec)


def test_an_init_container_takes_its_port_only_if_it_goes_on_running() -> None:
    waits: dict[str, Any] = {"name": "init", "image": "a", "ports": [{"hostPort": 80}]}
    goes_on = read_constraints(template(initContainers=[{**waits, "restartPolicy": "Always"}]))
    ends = read_constraints(template(initContainers=[waits]))
    assert host_ports_conflict(goes_on, goes_on)
    assert not host_ports_conflict(ends, ends)


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        (ports({"containerPort": 80}), ports({"containerPort": 80}), False),
        (ports({"containerPort": 80, "hostPort": 80}), ports({"containerPort": 80}), False),
        (
            ports({"containerPort": 1, "hostPort": 80}),
            ports({"containerPort": 2, "hostPort": 80}),
            True,
        ),
        (ports({"hostPort": 80, "protocol": "UDP"}), ports({"hostPort": 80}), False),
        (
            ports({"hostPort": 80, "hostIP": "10.0.0.1"}),
            ports({"hostPort": 80, "hostIP": "10.0.0.2"}),
            False,
        ),
        (ports({"hostPort": 80, "hostIP": "10.0.0.1"}), ports({"hostPort": 80}), True),
        (
            ports({"containerPort": 80}, hostNetwork=True),
            ports({"containerPort": 80}, hostNetwork=True),
            True,
        ),
    ],
)
def test_two_pods_clash_when_they_share_a_port_of_the_node(
    one: bytes, other: bytes, clash: bool
) -> None:
    assert host_ports_conflict(read_constraints(one), read_constraints(other)) is clash
    assert host_ports_conflict(read_constraints(other), read_constraints(one)) is clash
