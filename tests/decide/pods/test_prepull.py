from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, IntOrPercent, UpdateStrategy, UpdateStrategyType
from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.actions import Cause, CreatePod, DeletePod, PatchPod
from everynode.decide.pods.prepull import (
    PullNode,
    PullPlan,
    PullResult,
    PullSettings,
    may_start,
    new_images,
    plan_pulls,
    pull_result,
    read_pull_settings,
)
from everynode.decide.pods.pull_pod import ImagePull, pull_pod_name
from tests.support.samples import (
    NOW,
    advanced,
    container,
    container_status,
    pod,
    pod_json,
    read_pod,
    revision,
    template,
    template_with,
)

OLD = revision(template_with(image="registry.example/agent:1"), "old")
NEW = revision(template_with(image="registry.example/agent:2"), "new")
DS = advanced(NEW.template)


def annotated(**values: str) -> DaemonSet:
    names = {
        "parallelism": keys.PREDOWNLOAD_PARALLELISM,
        "timeout": keys.PREDOWNLOAD_TIMEOUT,
        "ready": keys.PREDOWNLOAD_MIN_UPDATED_READY,
    }
    noted = {names[key]: value for key, value in values.items()}
    return advanced(NEW.template, metadata={"annotations": noted})


# --- Settings ----------------------------------------------------------------------------------


def test_nothing_is_pulled_unless_the_annotation_asks_for_it() -> None:
    assert read_pull_settings(DS) is None
    assert read_pull_settings(DS, always=True) == PullSettings(parallelism=1, timeout=300)
    assert read_pull_settings(annotated(parallelism="10")) == PullSettings(parallelism=10)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"timeout": "60"}, PullSettings(timeout=60)),
        ({"ready": "3"}, PullSettings(min_updated_ready=IntOrPercent(3))),
        ({"ready": "20%"}, PullSettings(min_updated_ready=IntOrPercent(20, percent=True))),
        ({"parallelism": "0"}, PullSettings(parallelism=0)),
    ],
)
def test_annotations_say_how_much_is_pulled(values: dict[str, str], expected: PullSettings) -> None:
    assert read_pull_settings(annotated(**values), always=True) == expected


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"parallelism": "many"}, keys.PREDOWNLOAD_PARALLELISM),
        ({"parallelism": "-1"}, keys.PREDOWNLOAD_PARALLELISM),
        ({"parallelism": "1.5"}, keys.PREDOWNLOAD_PARALLELISM),
        ({"parallelism": "9" * 5000}, keys.PREDOWNLOAD_PARALLELISM),
        ({"timeout": "0"}, keys.PREDOWNLOAD_TIMEOUT),
        ({"ready": "some"}, keys.PREDOWNLOAD_MIN_UPDATED_READY),
        ({"ready": ""}, keys.PREDOWNLOAD_MIN_UPDATED_READY),
    ],
)
def test_a_malformed_annotation_is_named_and_takes_its_default(
    values: dict[str, str], key: str
) -> None:
    found = read_pull_settings(annotated(**values), always=True)
    assert found is not None
    assert (found.parallelism, found.timeout, found.min_updated_ready) == (1, 300, None)
    (fault,) = found.faults
    assert key in fault.path


@pytest.mark.parametrize(
    ("least", "updated_ready", "starts"),
    [
        (None, 0, True),
        (IntOrPercent(3), 2, False),
        (IntOrPercent(3), 3, True),
        (IntOrPercent(25, percent=True), 2, False),  # 25% of 10 is 3
        (IntOrPercent(25, percent=True), 3, True),
    ],
)
def test_pulling_waits_for_updated_pods_that_are_ready(
    least: IntOrPercent | None, updated_ready: int, starts: bool
) -> None:
    settings = PullSettings(min_updated_ready=least)
    assert may_start(DS, settings, desired=10, updated_ready=updated_ready) is starts


@pytest.mark.parametrize(
    ("strategy", "starts"),
    [
        (UpdateStrategy(max_unavailable=IntOrPercent(9)), True),
        (UpdateStrategy(max_unavailable=IntOrPercent(10)), False),
        (UpdateStrategy(max_unavailable=IntOrPercent(100, percent=True)), False),
        (UpdateStrategy(max_unavailable=IntOrPercent(10), partition=IntOrPercent(5)), True),
        (UpdateStrategy(type=UpdateStrategyType.ON_DELETE, max_unavailable=IntOrPercent(10)), True),
    ],
)
def test_nothing_is_pulled_ahead_of_an_update_that_goes_everywhere_at_once(
    strategy: UpdateStrategy, starts: bool
) -> None:
    ds = advanced(NEW.template, strategy=strategy)
    assert may_start(ds, PullSettings(), desired=10, updated_ready=0) is starts


# --- Images ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([container("a", "x:1")], [container("a", "x:2")], [ImagePull("x:2")]),
        ([container("a", "x:1")], [container("a", "docker.io/library/x:1")], []),
        (
            [container("a", "x:1")],
            [container("a", "x:1"), container("b", "y:1")],
            [ImagePull("y:1")],
        ),
        ([container("a", "x:1"), container("b", "y:1")], [container("a", "y:1")], []),
        (
            [container("a", "x:1")],
            [container("a", "y:1"), container("b", "y:1")],
            [ImagePull("y:1")],
        ),
        (
            [container("a", "x:1")],
            [container("a", "x:2", imagePullPolicy="Always")],
            [ImagePull("x:2", "Always")],
        ),
        ([container("a", "x:1")], [container("a", "x:2", imagePullPolicy="Never")], []),
    ],
)
def test_the_images_that_the_old_template_does_not_use_are_pulled(
    old: list[Any], new: list[Any], expected: list[ImagePull]
) -> None:
    assert list(new_images(template(containers=old), template(containers=new))) == expected


def test_images_of_init_containers_are_not() -> None:
    new = template(initContainers=[container("init", "z:9")])
    assert new_images(template(), new) == ()


@pytest.mark.parametrize(
    "broken",
    [b"{}", b'{"spec":"x"}', b'{"spec":{"containers":"x"}}', b'{"spec":{"containers":["x"]}}'],
)
def test_a_malformed_template_has_no_images(broken: bytes) -> None:
    assert new_images(template(), broken) == ()
    assert new_images(broken, template()) == (ImagePull("registry.example/agent:1"),)


# --- Pull pods ---------------------------------------------------------------------------------


def place(
    node: str, hash: str = "old", *, pulled: str = "", pull_pod: Pod | None = None
) -> PullNode:
    annotations = {keys.PULLED: pulled} if pulled else {}
    made = pod_json(hash, annotations=annotations, metadata={"name": f"agent-{node}"})
    made["spec"]["nodeName"] = node
    return PullNode(node, read_pod(made), pull_pod)


def pull_pod(node: str, *, age: float = 10, revision: str = "new", **made: Any) -> Pod:
    created = {
        "creationTimestamp": format_time(NOW - age),
        "name": pull_pod_name(DS, node, revision),
    }
    fields = {"phase": "Pending", "statuses": [waiting("ContainerCreating")], "gates": ()} | made
    return pod("", metadata=created, containers=[container("pull-0", "x:2")], **fields)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "pull-0", "image": "x:2", "state": state}


def plan(*places: PullNode, parallelism: int = 1, **more: Any) -> PullPlan:
    settings = PullSettings(parallelism=parallelism)
    return plan_pulls(DS, NEW, {"old": OLD, "new": NEW}, places, settings=settings, now=NOW, **more)


def test_pull_pods_start_in_the_order_of_the_update_and_no_more_than_allowed() -> None:
    pulls = plan(place("n1"), place("n3"), place("n2"), parallelism=2)
    assert [(each.node, each.cause) for each in pulls.actions] == [
        ("n3", Cause.PULL),
        ("n2", Cause.PULL),
    ]
    assert all(isinstance(each, CreatePod) for each in pulls.actions)
    assert (pulls.done, pulls.total) == (0, 3)


def test_running_pull_pods_use_up_the_parallelism() -> None:
    pulls = plan(place("n3", pull_pod=pull_pod("n3")), place("n2"))
    assert pulls.actions == ()
    assert pulls.wake_at == NOW + 290


def test_pulling_can_be_held() -> None:
    assert plan(place("n1"), parallelism=0).actions == ()
    assert plan(place("n1"), start=False).actions == ()


@pytest.mark.parametrize(
    "idle",
    [
        place("n1", "new"),  # has the target
        place("n1", pulled="new"),  # has the images
        place("n1", "lost"),  # its images are unknown
        PullNode("n1", None),
        PullNode("n1", pod("old", metadata={"deletionTimestamp": format_time(NOW)})),
    ],
)
def test_nodes_that_have_the_images_get_no_pull_pod(idle: PullNode) -> None:
    assert plan(idle).actions == ()


def test_pulled_images_are_recorded_before_the_pull_pod_is_deleted() -> None:
    ended = pull_pod("n1", phase="Failed", statuses=[container_status("pull-0", "x:2")])
    (noted,) = plan(place("n1", pull_pod=ended), place("n0")).actions
    assert isinstance(noted, PatchPod)
    assert noted.name == "agent-n1"
    assert noted.body["metadata"]["annotations"] == {keys.PULLED: "new"}
    assert noted.notice is None

    gone, next_one = plan(place("n1", pulled="new", pull_pod=ended), place("n0")).actions
    assert isinstance(gone, DeletePod)
    assert (gone.name, gone.uid, gone.resource_version) == (ended.name, ended.uid, "42")
    assert isinstance(next_one, CreatePod)
    assert next_one.node == "n0"


def test_a_failure_is_reported_and_not_retried() -> None:
    late = pull_pod("n1", age=300, statuses=[waiting("ImagePullBackOff", "no such tag")])
    (noted,) = plan(place("n1", pull_pod=late)).actions
    assert isinstance(noted, PatchPod)
    assert noted.notice is not None
    assert noted.notice.type == "Warning"
    assert "no such tag" in noted.notice.message
    assert "n1" in noted.notice.message


@pytest.mark.parametrize(
    "over",
    [
        place("n1", "new", pull_pod=pull_pod("n1")),  # updated meanwhile
        place("n1", pull_pod=pull_pod("n1", revision="former")),  # for another target
        PullNode("n1", None, pull_pod("n1")),
    ],
)
def test_a_pull_pod_that_is_no_longer_needed_is_deleted(over: PullNode) -> None:
    (gone,) = plan(over).actions
    assert isinstance(gone, DeletePod)
    assert gone.cause is Cause.PULLED


def test_a_terminating_pull_pod_is_not_deleted_again() -> None:
    going = pull_pod("n1")
    going = msgspec.structs.replace(
        going,
        metadata=msgspec.structs.replace(
            going.metadata, deletion_timestamp=going.metadata.creation_timestamp
        ),
    )
    assert plan(place("n1", pull_pod=going)).actions == ()


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        ({"statuses": []}, PullResult.PULLING),
        ({}, PullResult.PULLING),
        ({"statuses": [waiting("ErrImagePull")]}, PullResult.PULLING),  # the kubelet tries again
        ({"statuses": [waiting("ErrImagePull")], "age": 301}, PullResult.FAILED),
        ({"statuses": [], "age": 301}, PullResult.FAILED),
        ({"statuses": [], "phase": "Failed"}, PullResult.FAILED),
        ({"statuses": [waiting("CreateContainerConfigError")]}, PullResult.PULLED),
        ({"statuses": [waiting("RunContainerError")]}, PullResult.PULLED),
        ({"statuses": [waiting("CreateContainerError")], "age": 301}, PullResult.PULLED),
        ({"statuses": [container_status("pull-0", "x:2")]}, PullResult.PULLED),
        (
            {"statuses": [container_status("pull-0", "x:2")], "phase": "Failed", "age": 999},
            PullResult.PULLED,
        ),
    ],
)
def test_an_image_is_there_when_anything_but_the_pull_failed(
    made: dict[str, Any], verdict: PullResult
) -> None:
    assert pull_result(pull_pod("n1", **made), PullSettings(), now=NOW)[0] is verdict


def test_a_container_that_was_never_created_because_time_ran_out_has_no_image() -> None:
    # The kubelet reports such containers as terminated, without an image's id.
    state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    status = {"name": "pull-0", "image": "x:2", "state": state}
    out_of_time = pull_pod("n1", phase="Failed", reason="DeadlineExceeded", statuses=[status])
    assert pull_result(out_of_time, PullSettings(), now=NOW) == (
        PullResult.FAILED,
        "DeadlineExceeded",
    )


def test_all_images_must_be_there() -> None:
    two = pod(
        containers=[container("pull-0", "x:2"), container("pull-1", "y:2")],
        statuses=[container_status("pull-0", "x:2")],
        metadata={"creationTimestamp": format_time(NOW - 5)},
    )
    assert pull_result(two, PullSettings(), now=NOW)[0] is PullResult.PULLING
