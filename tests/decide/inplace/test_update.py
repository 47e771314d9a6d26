from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import format_time
from everynode.decide.actions import Cause, PatchPod
from everynode.decide.inplace.diff import Recreate
from everynode.decide.inplace.state import InPlaceStage, has_unfinished_update
from everynode.decide.inplace.update import (
    IN_PLACE_TIMEOUT,
    SAME_IMAGE_TIMEOUT,
    Done,
    NextStep,
    Wait,
    maintenance_patch,
    next_step,
    settles_at,
)
from everynode.decide.node.availability import available_at
from everynode.decide.revisions.target import Revision
from tests.support.inplace_kubelet import Machine
from tests.support.samples import NOW, condition, container, pod, revision, template_with

GATE = keys.INPLACE_UPDATE_READY


def sample(image: int, cpu: int, label: str = "x", side: int = 1, **more: Any) -> bytes:
    metadata = {"labels": {"app": "agent", "kind": label}, "annotations": {"note": label}}
    resources = {"limits": {"cpu": str(cpu), "memory": "1Gi"}}
    agent = container(image=f"registry.example/agent:{image}", resources=resources, **more)
    fixed = {"limits": {"cpu": str(side), "memory": "1Gi"}}
    other = container("side", image=f"registry.example/side:{side}", resources=fixed)
    return msgspec.json.encode({"metadata": metadata, "spec": {"containers": [agent, other]}})


REVISIONS = {
    hash: revision(made, hash)
    for hash, made in {
        "base": sample(1, 1),
        "image": sample(2, 1),
        "label": sample(1, 1, "y"),
        "size": sample(1, 2),
        "both": sample(3, 3, "z"),
        # Each shares something with another, so that what that one left undone must be done.
        "image, label": sample(2, 1, "y"),
        "image, size": sample(2, 2),
        "both, label": sample(3, 3, "y"),
        "both, side": sample(3, 3, "z", side=2),
    }.items()
}
TARGETS = [hash for hash in REVISIONS if hash != "base"]


def step(machine: Machine, target: str) -> NextStep:
    found = machine.read()
    return next_step(found, REVISIONS.get(found.hash), REVISIONS[target], now=machine.now)


def drive(machine: Machine, target: str, *, limit: int = 30) -> None:
    """Take every step and let the kubelet work, until there is nothing to do."""
    for _ in range(limit):
        taken = step(machine, target)
        assert not isinstance(taken, Recreate), taken.reason
        if isinstance(taken, Done):
            return
        if isinstance(taken, PatchPod):
            machine.apply(taken)
        machine.run()
    raise AssertionError("no end is in sight")


def check(machine: Machine, hash: str) -> None:
    """The pod is what its hash says, in service, and nothing is left to do."""
    found, wanted = machine.read(), msgspec.json.decode(REVISIONS[hash].template)
    assert found.hash == hash
    for live, meant in zip(found.spec.containers, wanted["spec"]["containers"], strict=True):
        assert live.image == meant["image"]
        assert live.resources.limits == meant["resources"]["limits"]
        assert live.resources.requests == meant["resources"]["limits"]
    for live, status in zip(found.spec.containers, found.status.container_statuses, strict=True):
        assert status.image == live.image
    assert found.metadata.labels["kind"] == wanted["metadata"]["labels"]["kind"]
    assert (
        machine.pod["metadata"]["annotations"]["note"] == wanted["metadata"]["annotations"]["note"]
    )
    assert machine.is_true(GATE)
    assert not has_unfinished_update(found)
    assert maintenance_patch(found, now=machine.now) is None


def writes(machine: Machine) -> list[str]:
    """Each write by what it does, in order."""
    said = []
    for patch in machine.writes:
        conditions = patch.body.get("status", {}).get("conditions", [])
        gate = [f"gate {each['status']}" for each in conditions if each["type"] == GATE]
        noted = ["hash"] if keys.REVISION_HASH in patch.body["metadata"].get("labels", {}) else []
        containers = patch.body.get("spec", {}).get("containers", [])
        changed = [key for each in containers for key in sorted(each) if key != "name"]
        said.append("+".join(gate + noted + changed) or "record")
    return said


# --- One update --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("image", ["gate False", "hash+image", "gate True"]),
        ("label", ["hash"]),
        ("size", ["hash", "resources", "record"]),
        ("both", ["gate False+hash", "resources", "image", "gate True"]),
    ],
)
def test_an_update_takes_these_writes_and_no_more(target: str, expected: list[str]) -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    drive(machine, target)
    check(machine, target)
    assert writes(machine) == expected


def test_a_resize_that_restarts_closes_the_gate() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    old = revision(sample(1, 1, resizePolicy=policy), "old")
    new = revision(sample(1, 2, resizePolicy=policy), "new")
    machine = Machine(old.template, "old")
    first = next_step(machine.read(), old, new, now=NOW)
    assert isinstance(first, PatchPod)
    machine.apply(first)
    assert not machine.is_true(GATE)
    while isinstance(taken := next_step(machine.read(), old, new, now=NOW), PatchPod):
        machine.apply(taken)
        machine.run()
    assert writes(machine) == ["gate False+hash", "resources", "gate True"]


def test_a_metadata_update_keeps_the_pod_available() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    before = available_at(machine.read(), 30)
    drive(machine, "label")
    assert available_at(machine.read(), 30) == before


def test_a_resize_counts_against_availability_until_it_is_done() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    taken = step(machine, "size")
    assert isinstance(taken, PatchPod)
    machine.apply(taken)
    assert machine.is_true(keys.READY)
    assert available_at(machine.read(), 0) is None


def test_the_record_says_what_was_running_and_when() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    drive(machine, "image")
    record = msgspec.json.decode(machine.pod["metadata"]["annotations"][keys.INPLACE_STATE])
    assert record == {
        "revision": "image",
        "updateTimestamp": format_time(NOW),
        "lastContainerStatuses": {
            "agent": {
                "imageID": "sha256:registry.example/agent:1",
                "containerID": "containerd://agent-1",
            }
        },
        "updateImages": True,
        "containerBatchesRecord": [{"timestamp": format_time(NOW), "containers": ["agent"]}],
    }


def test_an_update_announces_itself_and_removes_old_annotations() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    machine.pod["metadata"]["annotations"] |= {
        keys.INPLACE_STATE_OLD: "{}",
        keys.INPLACE_GRACE: "{}",
        keys.INPLACE_GRACE_OLD: "{}",
    }
    drive(machine, "image")
    assert sorted(machine.pod["metadata"]["annotations"]) == [keys.INPLACE_STATE, "note"]
    (notice,) = [patch.notice for patch in machine.writes if patch.notice is not None]
    assert notice.reason == "SuccessfulUpdatePodInPlace"
    assert all(patch.cause is Cause.IN_PLACE for patch in machine.writes[:-1])


def test_finalizers_of_the_template_come_and_go_with_it() -> None:
    old = revision(template_with({"finalizers": ["a", "b"]}), "old")
    new = revision(template_with({"finalizers": ["b", "c"]}), "new")
    taken = next_step(pod("old"), old, new, now=NOW)
    assert isinstance(taken, PatchPod)
    assert taken.body["metadata"]["finalizers"] == ["c"]
    assert taken.body["metadata"]["$deleteFromPrimitiveList/finalizers"] == ["a"]


@pytest.mark.parametrize(
    ("conditions", "begun"),
    [
        ([condition(GATE, "False", since=NOW - 60)], NOW - 60),
        ([condition(GATE, "False", since=None)], NOW - 900),  # when the pod started
    ],
)
def test_a_record_without_a_readable_time_goes_by_the_gate_or_the_pod(
    conditions: list[Any], begun: float
) -> None:
    record = '{"updateTimestamp":"?","lastContainerStatuses":{"agent":{"imageID":"x"}}}'
    statuses = [{"name": "agent", "image": "old", "imageID": "x"}]
    made = {"annotations": {keys.INPLACE_STATE: record}, "statuses": statuses}
    begun_pod = pod("image", conditions=[condition(keys.KRUISE_POD_READY), *conditions], **made)
    taken = next_step(begun_pod, REVISIONS["image"], REVISIONS["image"], now=NOW)
    if begun + 600 > NOW:
        assert isinstance(taken, Wait)
        assert taken.until == begun + 600
    else:
        assert isinstance(taken, Recreate)


def updating(target: str = "image") -> Machine:
    """Return a pod whose new image is written; its kubelet has not seen it."""
    machine = Machine(REVISIONS["base"].template, "base")
    for _ in range(2):
        taken = step(machine, target)
        assert isinstance(taken, PatchPod)
        machine.apply(taken)
    return machine


def test_a_restart_of_the_old_image_is_not_the_update() -> None:
    machine = updating()
    machine.restart()
    machine.wait(SAME_IMAGE_TIMEOUT - 1)
    assert step(machine, "image") == Wait(NOW + SAME_IMAGE_TIMEOUT, InPlaceStage.RESTARTING.value)
    machine.run()
    drive(machine, "image")
    check(machine, "image")


def test_two_tags_of_one_image_are_told_apart_by_the_restart() -> None:
    # A runtime names one tag of an image: nothing but the container's id changes.
    machine = updating()
    assert step(machine, "image") == Wait(NOW + IN_PLACE_TIMEOUT, InPlaceStage.RESTARTING.value)
    machine.restart()
    machine.wait(SAME_IMAGE_TIMEOUT)
    last = step(machine, "image")
    assert isinstance(last, PatchPod)
    assert last.body["status"]["conditions"][0]["status"] == "True"
    assert maintenance_patch(machine.read(), now=machine.now) == last
    assert settles_at(machine.read()) == machine.now
    machine.pod["spec"]["containers"][0]["image"] = "registry.example/agent:1"  # the same content
    machine.apply(last)
    assert not has_unfinished_update(machine.read())


def test_a_restarted_container_must_run_to_count() -> None:
    machine = updating()
    machine.restart()
    machine.pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "Error"}}
    machine.wait(SAME_IMAGE_TIMEOUT)
    assert isinstance(step(machine, "image"), Wait)


def test_an_image_that_was_wanted_in_between_is_not_the_update() -> None:
    machine = updating()
    taken = step(machine, "both, label")
    while isinstance(taken, PatchPod) and "image" not in str(taken.body.get("spec")):
        machine.apply(taken)
        machine.run()
        taken = step(machine, "both, label")
    assert isinstance(taken, PatchPod)
    machine.apply(taken)
    assert isinstance(step(machine, "both, label"), Wait)  # agent:2 runs, agent:3 is wanted
    machine.run()
    drive(machine, "both, label")
    check(machine, "both, label")


def test_a_container_that_had_not_started_may_start_with_the_old_image() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    status = machine.pod["status"]["containerStatuses"][0]
    started = {**status}
    status.update(imageID="", containerID="", image="")
    for _ in range(2):
        taken = step(machine, "image")
        assert isinstance(taken, PatchPod)
        machine.apply(taken)
    status.update(started)
    assert isinstance(step(machine, "image"), Wait)
    machine.run()
    drive(machine, "image")
    check(machine, "image")


# --- Crashes and changes of mind ---------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kubelet_runs", [True, False])
@pytest.mark.parametrize("after", ["the same", "nothing", *REVISIONS])
def test_whatever_was_written_before_a_crash_is_taken_up(
    target: str, kubelet_runs: bool, after: str
) -> None:
    """Every prefix of the writes, followed by everything that may be wanted after it."""
    whole = Machine(REVISIONS["base"].template, "base")
    drive(whole, target)
    for cut in range(len(whole.writes) + 1):
        machine = Machine(REVISIONS["base"].template, "base")
        while len(machine.writes) < cut:
            taken = step(machine, target)
            if isinstance(taken, PatchPod):
                machine.apply(taken)
            if kubelet_runs or not isinstance(taken, PatchPod):
                machine.run()
        machine.wait(60)
        if after == "nothing":
            settle(machine)
            continue
        final = target if after == "the same" else after
        drive(machine, final)
        check(machine, final)


def settle(machine: Machine) -> None:
    """The pod is not to be updated any more: what was begun ends, and it is in service again."""
    for _ in range(20):
        machine.run()
        patch = maintenance_patch(machine.read(), now=machine.now)
        if patch is None and not has_unfinished_update(machine.read()):
            break
        if patch is not None:
            machine.apply(patch)
    check(machine, machine.read().hash)


def test_images_are_not_written_while_the_gate_is_open() -> None:
    # Another client opened it between the resize and the images.
    for wanted in ("both", "both, label"):
        machine = Machine(REVISIONS["base"].template, "base")
        for _ in range(2):
            taken = step(machine, "both")
            assert isinstance(taken, PatchPod)
            machine.apply(taken)
        machine.run()
        machine.pod["status"]["conditions"] = [condition(GATE), condition(keys.KRUISE_POD_READY)]
        drive(machine, wanted)  # the machine itself checks the order
        check(machine, wanted)


def test_a_finished_resize_is_not_asked_about_again() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    while len(machine.writes) < 3:
        taken = step(machine, "both")
        if isinstance(taken, PatchPod):
            machine.apply(taken)
        machine.run()
    # A container that starts over says nothing of its resources for a while.
    machine.pod["status"]["containerStatuses"][0]["resources"] = None
    last = step(machine, "both")
    assert isinstance(last, PatchPod)
    assert opened(last) == {GATE: "True"}


def test_images_that_were_left_over_are_not_written_while_the_gate_is_open() -> None:
    left = '{"revision":"both","nextContainerImages":{"agent":"registry.example/agent:3"}}'
    machine = Machine(sample(1, 3, "z"), "both")
    machine.pod["metadata"]["annotations"][keys.INPLACE_STATE] = left
    drive(machine, "both, label")
    check(machine, "both, label")


spells = st.lists(
    st.tuples(st.sampled_from(list(REVISIONS)), st.integers(0, 4), st.booleans(), st.booleans()),
    max_size=6,
)


@given(spells, st.sampled_from(list(REVISIONS)))
def test_any_history_of_targets_ends_at_the_last_one(
    history: list[tuple[str, int, bool, bool]], final: str
) -> None:
    """For a while each target is pursued, with or without a kubelet, then perhaps dropped."""
    machine = Machine(REVISIONS["base"].template, "base")
    for target, steps, kubelet_runs, dropped in history:
        for _ in range(steps):
            taken = step(machine, target)
            assert not isinstance(taken, Recreate)
            if isinstance(taken, PatchPod):
                machine.apply(taken)
            if kubelet_runs:
                machine.run()
        patch = maintenance_patch(machine.read(), now=machine.now) if dropped else None
        if patch is not None:
            machine.apply(patch)
    drive(machine, final)
    check(machine, final)


# --- When a new pod is needed ------------------------------------------------------------------


def reason(found: Pod, old: Revision | None, target: str = "image", now: float = NOW) -> str:
    taken = next_step(found, old, REVISIONS[target], now=now)
    assert isinstance(taken, Recreate), taken
    return taken.reason


def test_a_pod_without_the_gate_is_replaced() -> None:
    assert GATE in reason(pod("base", gates=()), REVISIONS["base"])


def test_a_pod_whose_revision_is_gone_is_replaced() -> None:
    assert "gone" in reason(pod("base"), None)


def test_a_finished_pod_is_replaced() -> None:
    assert "ended" in reason(pod("base", phase="Failed"), REVISIONS["base"])


def test_a_change_that_does_not_qualify_says_why() -> None:
    other = revision(template_with(env=[{"name": "A", "value": "1"}]), "other")
    assert "cannot be changed in place" in reason(pod("other"), other)


def test_a_pod_without_the_container_is_replaced() -> None:
    odd = pod("base", containers=[container("other")])
    assert "no container agent" in reason(odd, REVISIONS["base"])


@pytest.mark.parametrize(("target", "steps"), [("image", 2), ("size", 1), ("size", 2), ("both", 3)])
def test_a_step_that_takes_ten_minutes_is_given_up(target: str, steps: int) -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    for _ in range(steps):
        taken = step(machine, target)
        assert isinstance(taken, PatchPod)
        machine.apply(taken)
        if target == "both" and len(machine.writes) == 2:
            machine.run()
    machine.wait(599)
    assert not isinstance(step(machine, target), Recreate)
    machine.wait(1)
    taken = step(machine, target)
    assert isinstance(taken, Recreate)
    assert "10 minutes" in taken.reason


def test_waiting_ends_when_patience_does() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    for _ in range(2):
        taken = step(machine, "image")
        assert isinstance(taken, PatchPod)
        machine.apply(taken)
    waiting = step(machine, "image")
    assert isinstance(waiting, Wait)
    assert waiting.until == NOW + 600


def test_a_resize_that_the_node_cannot_give_is_given_up_at_once() -> None:
    machine = Machine(REVISIONS["base"].template, "base")
    for _ in range(2):
        taken = step(machine, "size")
        assert isinstance(taken, PatchPod)
        machine.apply(taken)
    assert isinstance(step(machine, "size"), Wait)
    machine.pod["status"]["conditions"].append(condition("PodResizePending", reason="Infeasible"))
    assert isinstance(step(machine, "size"), Recreate)


def test_a_pod_that_cannot_be_written_is_given_up_after_ten_minutes() -> None:
    # Out of service, but the server refuses the change: readiness must not flap again and again.
    since = NOW - 600
    shut = [condition(GATE, "False", since=since, reason="StartInPlaceUpdate")]
    assert "could not be changed" in reason(pod("base", conditions=shut), REVISIONS["base"])


# --- Refresh -----------------------------------------------------------------------------------


def opened(patch: PatchPod | None) -> dict[str, str]:
    assert patch is not None
    assert patch.subresource == "status"
    return {each["type"]: each["status"] for each in patch.body["status"]["conditions"]}


def test_both_gates_of_a_new_pod_open_in_one_write() -> None:
    new = pod(conditions=[condition(keys.CONTAINERS_READY)])
    patch = maintenance_patch(new, now=NOW)
    assert opened(patch) == {keys.KRUISE_POD_READY: "True", GATE: "True"}
    assert patch is not None
    assert patch.cause is Cause.GATE


def test_a_gate_the_pod_does_not_have_is_not_written() -> None:
    only = pod(gates=(keys.KRUISE_POD_READY,), conditions=[])
    assert opened(maintenance_patch(only, now=NOW)) == {keys.KRUISE_POD_READY: "True"}
    assert maintenance_patch(pod(gates=(), conditions=[]), now=NOW) is None


def test_a_gate_that_is_closed_for_nothing_opens() -> None:
    shut = [condition(keys.KRUISE_POD_READY), condition(GATE, "False")]
    assert opened(maintenance_patch(pod(conditions=shut), now=NOW)) == {GATE: "True"}


def test_a_pod_kept_unready_by_others_stays_so() -> None:
    message = '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'
    shut = [condition(keys.KRUISE_POD_READY, "False", message=message), condition(GATE)]
    assert maintenance_patch(pod(conditions=shut), now=NOW) is None


@pytest.mark.parametrize(
    "made", [{"phase": "Failed"}, {"metadata": {"deletionTimestamp": format_time(NOW)}}]
)
def test_a_pod_that_is_over_is_left_alone(made: dict[str, Any]) -> None:
    assert maintenance_patch(pod(conditions=[], **made), now=NOW) is None


def test_an_unreadable_record_does_not_keep_the_gate_closed() -> None:
    broken = pod(annotations={keys.INPLACE_STATE: "{"}, conditions=[condition(GATE, "False")])
    assert GATE in opened(maintenance_patch(broken, now=NOW))


def test_an_update_that_openkruise_began_is_ended() -> None:
    theirs = (
        '{"revision":"image","updateTimestamp":"2023-11-14T22:13:10Z","lastContainerStatuses":'
        '{"agent":{"imageID":"sha256:old"}},"updateImages":true}'
    )
    shut = [condition(keys.KRUISE_POD_READY), condition(GATE, "False")]
    begun = pod("image", annotations={keys.INPLACE_STATE_OLD: theirs}, conditions=shut)
    assert opened(maintenance_patch(begun, now=NOW)) == {GATE: "True"}
