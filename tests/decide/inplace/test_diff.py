from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.objects import Resources
from everynode.decide.inplace.diff import InPlaceChange, Recreate, classify
from tests.support.samples import container, template, template_with

OLD = "registry.example/agent:1"
NEW = "registry.example/agent:2"


def resized(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None) -> bytes:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return template_with(resources=resources)


def changed(old: bytes, new: bytes) -> InPlaceChange:
    change = classify(old, new)
    assert isinstance(change, InPlaceChange), change
    return change


def reason(old: bytes, new: bytes) -> str:
    change = classify(old, new)
    assert isinstance(change, Recreate), change
    return change.reason


def test_an_image_may_change() -> None:
    assert changed(template_with(image=OLD), template_with(image=NEW)) == InPlaceChange(
        images={"agent": NEW}, restarts=True
    )


def test_only_the_changed_containers_are_named() -> None:
    old = template(containers=[container("a", OLD), container("b", OLD), container("c", OLD)])
    new = template(containers=[container("a", OLD), container("b", NEW), container("c", NEW)])
    assert changed(old, new).images == {"b": NEW, "c": NEW}


def test_metadata_may_change_and_restarts_nothing() -> None:
    old = template_with({"labels": {"app": "agent", "x": "1"}, "annotations": {"a": "1", "b": "1"}})
    new = template_with({"labels": {"app": "agent", "y": "2"}, "annotations": {"a": "2", "b": "1"}})
    assert changed(old, new) == InPlaceChange(labels={"x": None, "y": "2"}, annotations={"a": "2"})


def test_annotations_may_appear_as_a_whole() -> None:
    assert changed(template_with(), template_with({"annotations": {"a": "1"}})).annotations == {
        "a": "1"
    }


def test_finalizers_may_come_and_go() -> None:
    change = changed(
        template_with({"finalizers": ["a", "b"]}), template_with({"finalizers": ["b", "c"]})
    )
    assert (change.new_finalizers, change.old_finalizers) == (("c",), ("a",))


def test_an_equivalent_template_needs_no_write() -> None:
    spelled_out = template_with(imagePullPolicy="IfNotPresent", resources={}, env=[])
    assert changed(template_with(), spelled_out) == InPlaceChange()


def test_metadata_that_no_pod_gets_may_change_without_a_write() -> None:
    assert changed(template_with(), template_with({"name": "x"})) == InPlaceChange()


# --- Resizing ----------------------------------------------------------------------------------


def test_cpu_and_memory_may_change() -> None:
    old = resized({"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"})
    new = resized({"cpu": "2", "memory": "1Gi"}, {"memory": "3Gi"})
    assert changed(old, new) == InPlaceChange(
        resources={"agent": Resources(requests={"cpu": "2"}, limits={"memory": "3Gi"})}
    )


def test_another_spelling_of_an_amount_is_no_change() -> None:
    assert changed(resized({"cpu": "1"}), resized({"cpu": "1000m"})) == InPlaceChange()


def test_requests_that_the_limits_stand_for_are_resized_with_them() -> None:
    # The API server copied the limits: without the requests it would refuse the resize.
    old = resized(limits={"cpu": "1", "memory": "1Gi"})
    new = resized(limits={"cpu": "2", "memory": "1Gi"})
    assert changed(old, new).resources == {
        "agent": Resources(requests={"cpu": "2"}, limits={"cpu": "2"})
    }


@pytest.mark.parametrize(
    ("policy", "restarts"),
    [
        ([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}], True),
        ([{"resourceName": "cpu", "restartPolicy": "NotRequired"}], False),
        ([{"resourceName": "memory", "restartPolicy": "RestartContainer"}], False),
        ([], False),
    ],
)
def test_a_resize_restarts_only_where_its_policy_says_so(policy: list[Any], restarts: bool) -> None:
    old = template_with(resources={"requests": {"cpu": "1"}}, resizePolicy=policy)
    new = template_with(resources={"requests": {"cpu": "2"}}, resizePolicy=policy)
    assert changed(old, new).restarts is restarts


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (resized(), resized({"cpu": "1"}), "resources"),
        (resized({"cpu": "1"}), resized(), "resources"),
        (resized({"cpu": "1"}), resized({"cpu": "1"}, {"cpu": "2"}), "resources"),
        (
            resized({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
            resized({"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
            "quality of service",
        ),
        (
            resized({"cpu": "1", "example.com/gpu": "1"}),
            resized({"cpu": "1", "example.com/gpu": "2"}),
            "resources",
        ),
        (
            resized({"ephemeral-storage": "1Gi"}),
            resized({"ephemeral-storage": "2Gi"}),
            "resources",
        ),
    ],
)
def test_other_changes_of_resources_need_a_new_pod(old: bytes, new: bytes, words: str) -> None:
    assert words in reason(old, new)


def test_the_class_of_a_pod_counts_all_its_containers() -> None:
    fixed = {"limits": {"cpu": "1", "memory": "1Gi"}}
    grown = {"limits": {"cpu": "2", "memory": "1Gi"}}
    loose = container("init", OLD, resources={"requests": {"cpu": "1"}})
    old = template(containers=[container(resources=fixed)], initContainers=[loose])
    new = template(containers=[container(resources=grown)], initContainers=[loose])
    assert changed(old, new).resources


def test_resources_of_the_pod_as_a_whole_decide_its_class() -> None:
    amounts = {"cpu": "4", "memory": "4Gi"}
    whole = {"limits": amounts, "requests": amounts}
    old = template(resources=whole, containers=[container(resources={"limits": {"cpu": "1"}})])
    new = template(resources=whole, containers=[container(resources={"limits": {"cpu": "2"}})])
    assert changed(old, new).resources


def test_requests_of_the_pod_that_are_the_sum_of_its_containers_cannot_grow_with_them() -> None:
    # The API server set them when the pod was created, and they bound the containers since.
    whole = {"limits": {"cpu": "4", "memory": "4Gi"}}
    old = template(resources=whole, containers=[container(resources={"limits": {"cpu": "1"}})])
    new = template(resources=whole, containers=[container(resources={"limits": {"cpu": "2"}})])
    assert reason(old, new) == "spec.resources.requests.cpu cannot be changed in place"


def test_amounts_that_are_no_quantities_are_compared_as_they_are() -> None:
    assert changed(resized({"cpu": "much"}), resized({"cpu": "much"})) == InPlaceChange()
    assert changed(resized({"cpu": "much"}), resized({"cpu": "more"})).resources


# --- Everything else ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (template(), template(hostNetwork=True), "spec.hostNetwork"),
        (
            template_with(env=[{"name": "A", "value": "1"}]),
            template_with(env=[{"name": "A", "value": "2"}]),
            "spec.containers[agent].env[A].value",
        ),
        (
            template(initContainers=[container("init", OLD)]),
            template(initContainers=[container("init", NEW)]),
            "spec.initContainers[init].image",
        ),
        (
            template(containers=[container("a"), container("b")]),
            template(containers=[container("b"), container("a")]),
            "spec.containers[0].name",
        ),
        (
            template(containers=[container("a")]),
            template(containers=[container("a"), container("b")]),
            "spec.containers",
        ),
        (template(fieldOfTomorrow=1), template(fieldOfTomorrow=2), "spec.fieldOfTomorrow"),
        # Without an image no new pod could run: a pod that keeps its image is not updated.
        (template_with(), template_with(image=""), "spec.containers[agent].image"),
        (template(), template(containers=[{"name": "agent"}]), "spec.containers[agent].image"),
        (
            template_with(imagePullPolicy="Always"),
            template_with(image=NEW, imagePullPolicy="IfNotPresent"),
            "spec.containers[agent].imagePullPolicy",
        ),
    ],
)
def test_the_reason_names_the_field_that_needs_a_new_pod(
    old: bytes, new: bytes, where: str
) -> None:
    assert reason(old, new) == f"{where} cannot be changed in place"


@pytest.mark.parametrize(("old", "new"), [(OLD, "registry.example/agent"), ("agent:latest", NEW)])
def test_a_pull_policy_that_the_tag_implies_counts(old: str, new: str) -> None:
    # `latest` implies Always. A pod keeps its policy, and could run an outdated image.
    found = reason(template_with(image=old), template_with(image=new))
    assert found == "spec.containers[agent].imagePullPolicy cannot be changed in place"


def test_a_pull_policy_written_out_is_compared_with_the_implied_one() -> None:
    same = template_with(image=NEW, imagePullPolicy="IfNotPresent")
    assert changed(template_with(image=OLD), same).images == {"agent": NEW}
    other = template_with(image=NEW, imagePullPolicy="Always")
    assert "imagePullPolicy" in reason(template_with(image=OLD), other)


# --- A restart that was asked for --------------------------------------------------------------


def restarted(at: str | None, image: str = OLD) -> bytes:
    annotations = {} if at is None else {keys.RESTARTED_AT: at}
    return template_with({"annotations": annotations}, image=image)


@pytest.mark.parametrize("before", [None, "2026-11-18T10:00:00Z"])
@pytest.mark.parametrize("image", [OLD, NEW])
def test_a_requested_restart_recreates_pods(before: str | None, image: str) -> None:
    found = reason(restarted(before), restarted("2026-11-18T12:00:00Z", image))
    assert found == f"the template asks for a restart by {keys.RESTARTED_AT}"


def test_a_template_that_asks_for_no_restart_any_more_restarts_nothing() -> None:
    assert changed(restarted("2026-11-18T10:00:00Z"), restarted(None)) == InPlaceChange(
        annotations={keys.RESTARTED_AT: None}
    )


# --- Environment made of metadata and resources ------------------------------------------------


def reading(label: str, image: str = OLD, **more: Any) -> bytes:
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}]
    metadata = {"labels": {"app": "agent", "v": label}}
    containers = [container(image=image, env=env)]
    return msgspec.json.encode({"metadata": metadata, "spec": {"containers": containers, **more}})


def test_a_variable_made_of_changed_metadata_needs_a_new_pod() -> None:
    assert "variable V of container agent" in reason(reading("1"), reading("2"))


def test_a_container_that_restarts_anyway_reads_its_variables_anew() -> None:
    assert changed(reading("1", OLD), reading("2", NEW)).labels == {"v": "2"}


def test_metadata_that_no_variable_is_made_of_may_change() -> None:
    old, new = reading("1"), reading("1").replace(b'"agent",', b'"agent","w":"1",', 1)
    assert changed(old, new).labels == {"w": "1"}


def sized(cpu: str, *, image: str = OLD, of: str = "", policy: str = "NotRequired") -> bytes:
    reference = {"resource": "limits.cpu", **({"containerName": of} if of else {})}
    env = [{"name": "GOMAXPROCS", "valueFrom": {"resourceFieldRef": reference}}]
    amounts = {"cpu": cpu, "memory": "1Gi"}
    agent = container(
        image=image,
        env=env,
        resources={"limits": amounts},
        resizePolicy=[{"resourceName": "cpu", "restartPolicy": policy}],
    )
    side = container("side", resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    return template(containers=[agent, side])


def test_a_variable_made_of_a_resized_amount_needs_a_new_pod() -> None:
    found = reason(sized("1"), sized("2"))
    assert (
        found == "variable GOMAXPROCS of container agent is made of limits.cpu, which would change"
    )
    assert "GOMAXPROCS" in reason(sized("1", of="agent"), sized("2", of="agent"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (sized("1"), sized("2", image=NEW)),
        (sized("1", policy="RestartContainer"), sized("2", policy="RestartContainer")),
        (sized("1", of="side"), sized("2", of="side")),
    ],
    ids=["another image restarts it", "the resize restarts it", "of another container"],
)
def test_a_variable_that_is_read_anew_or_stays_right_needs_none(old: bytes, new: bytes) -> None:
    assert changed(old, new).resources


def test_a_sidecar_that_started_first_runs_on_with_its_variables() -> None:
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}}]
    for policy, stale in (("Always", True), (None, False)):
        sidecar = container("side", OLD, env=env, **({"restartPolicy": policy} if policy else {}))
        made = [
            msgspec.json.encode(
                {
                    "metadata": {"annotations": {"a": value}},
                    "spec": {"containers": [container()], "initContainers": [sidecar]},
                }
            )
            for value in ("1", "2")
        ]
        assert isinstance(classify(*made), Recreate) is stale


@pytest.mark.parametrize(
    "broken",
    [
        b"[]",
        b'{"spec":{"containers":"all"}}',
        b'{"spec":{"containers":[{"image":"x"}]}}',
        b'{"spec":{"containers":[{"name":"a","env":["B=1"]}]}}',
        b'{"metadata":{"labels":{"app":1}}}',
    ],
)
def test_a_malformed_template_is_a_reason(broken: bytes) -> None:
    assert "malformed" in reason(template(), broken)
    assert "malformed" in reason(broken, template())
