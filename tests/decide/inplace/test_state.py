from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.objects import Resources
from everynode.decide.inplace.state import (
    Batch,
    InPlaceStage,
    InPlaceState,
    LastStatus,
    PreCheck,
    has_unfinished_update,
    read_state,
    resize_trouble,
    stage,
    started_at,
    state_fault,
    write_state,
)
from tests.support.samples import NOW, condition, container, container_status, pod

IMAGE = "registry.example/agent:1"
SHUT = [condition(keys.INPLACE_UPDATE_READY, "False")]
# As OpenKruise 1.9 writes it.
THEIRS = (
    '{"revision":"5f8","updateTimestamp":"2023-11-14T22:13:20Z",'
    '"lastContainerStatuses":{"agent":{"imageID":"sha256:old"}},"updateImages":true,'
    '"containerBatchesRecord":[{"timestamp":"2023-11-14T22:13:20Z","containers":["agent"]}]}'
)


def test_the_record_of_openkruise_is_read_and_written_as_it_is() -> None:
    state = read_state(pod(annotations={keys.INPLACE_STATE: THEIRS}))
    assert state is not None
    assert state.revision == "5f8"
    assert started_at(state) == NOW
    ours = msgspec.json.decode(write_state(state))
    assert ours == msgspec.json.decode(THEIRS)


def test_empty_parts_are_left_out_and_no_containers_are_null() -> None:
    state = InPlaceState(
        "b", "2023-11-14T22:13:20Z", {}, container_batches_record=(Batch("t", ()),)
    )
    assert write_state(state) == (
        '{"revision":"b","updateTimestamp":"2023-11-14T22:13:20Z","lastContainerStatuses":null,'
        '"containerBatchesRecord":[{"timestamp":"t","containers":[]}]}'
    )


def test_the_old_name_of_the_annotation_is_read_too() -> None:
    old = read_state(pod(annotations={keys.INPLACE_STATE_OLD: THEIRS}))
    assert old is not None
    assert old.revision == "5f8"


DEEP = '{"unknown":' + "[" * 5000 + "]" * 5000 + "}"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"revision":1}', '{"lastContainerStatuses":[]}', DEEP]
)
def test_an_unreadable_record_is_a_reason_and_stops_nothing(text: str) -> None:
    broken = pod(annotations={keys.INPLACE_STATE: text})
    assert read_state(broken) is None
    assert keys.INPLACE_STATE in state_fault(broken)
    assert not has_unfinished_update(broken)


def test_a_readable_record_has_no_fault() -> None:
    assert state_fault(pod()) == ""
    assert state_fault(pod(annotations={keys.INPLACE_STATE: THEIRS})) == ""


def test_nulls_of_go_are_nothing() -> None:
    text = '{"lastContainerStatuses":null,"containerBatchesRecord":null,"nextContainerImages":null}'
    state = read_state(pod(annotations={keys.INPLACE_STATE: text}))
    assert stage(pod(), state) is InPlaceStage.FINISHED


@pytest.mark.parametrize("time", ["", "yesterday"])
def test_an_unreadable_time_is_none(time: str) -> None:
    assert started_at(InPlaceState(update_timestamp=time)) is None


# --- Images ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "last", "running"),
    [
        ({"imageID": "sha256:old", "image": "x:0"}, LastStatus("sha256:old"), False),
        ({"imageID": "sha256:new", "image": "x:0"}, LastStatus("sha256:old"), True),
        ({"imageID": "", "image": ""}, LastStatus("sha256:old"), False),
        # Two tags of one image: the name tells, once the container has restarted.
        ({"imageID": "sha256:old", "image": IMAGE}, LastStatus("sha256:old"), True),
        (
            {"imageID": "sha256:old", "image": IMAGE, "containerID": "c2"},
            LastStatus("sha256:old", "c1"),
            True,
        ),
        (
            {"imageID": "sha256:old", "image": IMAGE, "containerID": "c1"},
            LastStatus("sha256:old", "c1"),
            False,
        ),
        # A restart of the old image, and one of a third image that was wanted in between.
        (
            {"imageID": "sha256:old", "image": "x:0", "containerID": "c2"},
            LastStatus("sha256:old", "c1"),
            False,
        ),
        (
            {"imageID": "sha256:mid", "image": "x:0", "containerID": "c2"},
            LastStatus("sha256:old", "c1", "x:0"),
            False,
        ),
        (
            {"imageID": "sha256:new", "image": "x:stable", "containerID": "c2"},
            LastStatus("sha256:old", "c1", "x:0"),
            True,
        ),
        # Back to the image that still runs, before the kubelet has seen the other one.
        (
            {"imageID": "sha256:old", "image": IMAGE, "containerID": "c1"},
            LastStatus("sha256:old", "c1", "x:0"),
            True,
        ),
        # The container had not started when its image was changed.
        ({"imageID": "sha256:any", "image": "x:0"}, LastStatus(image="x:0"), False),
        (
            {"imageID": "sha256:old", "image": "x:0", "containerID": "c1"},
            LastStatus("sha256:old", "c1"),
            False,
        ),
        (
            {"imageID": "sha256:old", "image": "x:0", "containerID": ""},
            LastStatus("sha256:old", "c1"),
            False,
        ),
        ({"imageID": "sha256:any", "image": "x:0"}, LastStatus(), True),
    ],
)
def test_an_image_runs_when_the_kubelet_says_so(
    status: dict[str, Any], last: LastStatus, running: bool
) -> None:
    changed = pod(statuses=[container_status("agent", **status)])
    at = stage(changed, InPlaceState(last_container_statuses={"agent": last}))
    assert at is (InPlaceStage.FINISHED if running else InPlaceStage.RESTARTING)


@pytest.mark.parametrize(
    ("said", "spec"),
    [
        ("docker.io/library/nginx:latest", "nginx"),
        ("docker.io/library/nginx:1", "nginx:1"),
        ("registry.example:5000/agent:latest", "registry.example:5000/agent"),
    ],
)
def test_runtimes_spell_names_out(said: str, spec: str) -> None:
    status = container_status("agent", said, imageID="sha256:old")
    changed = pod(containers=[container(image=spec)], statuses=[status])
    state = InPlaceState(last_container_statuses={"agent": LastStatus("sha256:old")})
    assert stage(changed, state) is InPlaceStage.FINISHED


def test_a_container_without_a_status_is_waited_for() -> None:
    state = InPlaceState(last_container_statuses={"agent": LastStatus("sha256:old")})
    assert stage(pod(statuses=[]), state) is InPlaceStage.RESTARTING


def test_a_container_the_pod_does_not_have_is_not() -> None:
    state = InPlaceState(last_container_statuses={"other": LastStatus("sha256:old")})
    assert stage(pod(), state) is InPlaceStage.FINISHED


@pytest.mark.parametrize(
    ("ready", "at"), [(True, InPlaceStage.NEXT), (False, InPlaceStage.RESTARTING)]
)
def test_the_next_images_wait_for_the_containers_they_depend_on(
    ready: bool, at: InPlaceStage
) -> None:
    state = InPlaceState(
        next_container_images={"agent": "x:2"}, pre_check_before_next=PreCheck(("agent",))
    )
    assert stage(pod(statuses=[container_status("agent", IMAGE, ready=ready)]), state) is at


# --- Resources ---------------------------------------------------------------------------------

WANTED = InPlaceState(next_container_resources={"agent": Resources(requests={"cpu": "2"})})


def sized(spec: str, status: str | None, **more: Any) -> Any:
    resources = {"requests": {"cpu": status, "memory": "1Gi"}} if status else None
    return pod(
        containers=[container(resources={"requests": {"cpu": spec, "memory": "1Gi"}})],
        statuses=[container_status("agent", IMAGE, resources=resources)],
        **more,
    )


@pytest.mark.parametrize(
    ("resized", "at"),
    [
        (sized("1", "1"), InPlaceStage.RESIZE),
        (sized("2", "1"), InPlaceStage.RESIZING),
        (sized("2", None), InPlaceStage.RESIZING),
        (sized("2", "2", conditions=[condition("PodResizeInProgress")]), InPlaceStage.RESIZING),
        (
            sized("2", "2", conditions=[condition("PodResizePending", reason="Deferred")]),
            InPlaceStage.RESIZING,
        ),
        (sized("2", "2", resize="Proposed"), InPlaceStage.RESIZING),
        (sized("2", "2"), InPlaceStage.RESIZED),
        (sized("2", "2000m"), InPlaceStage.RESIZED),
    ],
)
def test_a_resize_goes_from_spec_to_status(resized: Any, at: InPlaceStage) -> None:
    assert stage(resized, WANTED) is at


def test_images_wait_for_the_resize() -> None:
    state = msgspec.structs.replace(WANTED, next_container_images={"agent": "x:2"})
    assert stage(sized("2", "1"), state) is InPlaceStage.RESIZING
    assert stage(sized("2", "2"), state) is InPlaceStage.NEXT


def test_a_resize_of_openkruise_is_over_when_the_gate_is_open() -> None:
    # Whatever others make of the resources later is not this update's business.
    theirs = InPlaceState(update_resources=True)
    assert stage(sized("2", "1", conditions=SHUT), theirs) is InPlaceStage.RESIZING
    assert stage(sized("2", "2", conditions=SHUT), theirs) is InPlaceStage.FINISHED
    assert stage(sized("2", "1"), theirs) is InPlaceStage.FINISHED


@pytest.mark.parametrize(
    ("made", "trouble"),
    [
        ({}, ""),
        ({"resize": "Infeasible"}, "Infeasible"),
        ({"resize": "InProgress"}, ""),
        ({"conditions": [condition("PodResizePending", reason="Infeasible")]}, "Infeasible"),
        ({"conditions": [condition("PodResizePending", "False", reason="Infeasible")]}, ""),
        ({"conditions": [condition("PodResizePending")]}, "Deferred"),
    ],
)
def test_the_kubelet_says_why_it_does_not_resize(made: dict[str, Any], trouble: str) -> None:
    assert resize_trouble(pod(**made)) == trouble
