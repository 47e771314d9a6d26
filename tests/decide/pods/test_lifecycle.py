from __future__ import annotations

import pytest

from everynode.api import keys
from everynode.api.daemonset import LifecycleHook
from everynode.api.times import format_time
from everynode.decide.actions import Cause
from everynode.decide.pods.lifecycle import is_hooked, is_preparing, mark_preparing
from tests.support.samples import NOW, condition, pod

BLOCK = {"example.io/block-deleting": "true"}
HOOK = LifecycleHook(labels=BLOCK)
MARKING = LifecycleHook(labels=BLOCK, mark_not_ready=True)
PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}
MESSAGE = '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'


@pytest.mark.parametrize(
    ("hook", "hooked"),
    [
        (None, False),
        (LifecycleHook(), False),
        (HOOK, True),
        (LifecycleHook(labels={"example.io/block-deleting": "false"}), False),
        (LifecycleHook(labels={"example.io/other": "true", **BLOCK}), True),
        (LifecycleHook(finalizers=("example.io/wait",)), True),
        (LifecycleHook(finalizers=("example.io/none", "example.io/wait")), True),
        (LifecycleHook(finalizers=("example.io/none",)), False),
    ],
)
def test_any_listed_label_or_finalizer_holds_a_pod(
    hook: LifecycleHook | None, hooked: bool
) -> None:
    held = pod(labels=BLOCK, metadata={"finalizers": ["example.io/wait"]})
    assert is_hooked(held, hook) is hooked


def test_a_hooked_pod_is_labelled_with_the_time() -> None:
    (patch,) = mark_preparing(pod(labels=BLOCK), HOOK, NOW)
    assert patch.cause is Cause.HOOK
    assert patch.subresource == ""
    assert patch.body["metadata"] == {
        "labels": PREPARING,
        "annotations": {keys.LIFECYCLE_TIMESTAMP: format_time(NOW)},
        "uid": "pod-uid",
        "resourceVersion": "42",
    }


def test_a_marked_pod_is_not_marked_again() -> None:
    marked = pod(labels={**BLOCK, **PREPARING})
    assert is_preparing(marked)
    assert mark_preparing(marked, HOOK, NOW) == ()


def test_a_pod_is_not_ready_before_its_hook_is_triggered() -> None:
    (first,) = mark_preparing(pod(labels=BLOCK), MARKING, NOW)
    assert first.subresource == "status"
    gate, ready = first.body["status"]["conditions"]
    assert (gate["type"], gate["status"], gate["message"]) == ("KruisePodReady", "False", MESSAGE)
    assert gate["lastTransitionTime"] == format_time(NOW)
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    assert ready["lastTransitionTime"] == format_time(NOW)

    half_marked = pod(
        labels=BLOCK, conditions=[condition("KruisePodReady", "False", message=MESSAGE)]
    )
    (second,) = mark_preparing(half_marked, MARKING, NOW)
    assert second.body["metadata"]["labels"] == PREPARING


def test_a_pod_is_preparing_from_the_first_write_on() -> None:
    half_marked = pod(conditions=[condition("KruisePodReady", "False", message=MESSAGE)])
    assert is_preparing(half_marked)


def test_other_blockers_are_kept_in_their_order() -> None:
    other = '[{"userAgent":"Zzz","key":"a"},{"userAgent":"Aaa","key":"b"}]'
    blocked = pod(labels=BLOCK, conditions=[condition("KruisePodReady", "False", message=other)])
    assert not is_preparing(blocked)
    (patch,) = mark_preparing(blocked, MARKING, NOW)
    (gate,) = patch.body["status"]["conditions"]
    assert gate["message"] == (
        '[{"userAgent":"Aaa","key":"b"},{"userAgent":"Lifecycle","key":"preDeleteHook"},'
        '{"userAgent":"Zzz","key":"a"}]'
    )
    assert "lastTransitionTime" not in gate


DEEP = '[{"unknown":' + "[" * 5000 + "]" * 5000 + "}]"


@pytest.mark.parametrize("message", ["maintenance", DEEP], ids=["text", "deep"])
def test_an_unreadable_message_blocks_nothing(message: str) -> None:
    odd = pod(labels=BLOCK, conditions=[condition("KruisePodReady", "False", message=message)])
    assert not is_preparing(odd)
    (patch,) = mark_preparing(odd, MARKING, NOW)
    assert patch.body["status"]["conditions"][0]["message"] == MESSAGE


def test_without_the_gate_the_pod_is_only_labelled() -> None:
    (patch,) = mark_preparing(pod(labels=BLOCK, gates=()), MARKING, NOW)
    assert patch.subresource == ""


def test_a_ready_condition_of_old_does_not_make_a_pod_preparing() -> None:
    # A message that was left behind by a client that set the status alone.
    assert not is_preparing(pod(conditions=[condition("KruisePodReady", "True", message=MESSAGE)]))
