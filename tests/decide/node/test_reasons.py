from __future__ import annotations

import msgspec
import pytest

from everynode.api import keys
from everynode.api.objects import Condition, ContainerState, ContainerStatus, Pod, StateTerminated
from everynode.decide.node import reasons
from everynode.decide.node.reasons import explain_pod, shorten
from tests.support.fleet import NEW, NOW, node, pod

PENDING = Condition("PodScheduled", "False", "Unschedulable", "0/5 nodes are available: no cpu")
PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}


@pytest.mark.parametrize(
    ("found", "ready", "code"),
    [
        (pod(NEW, ready=False), "Unknown", reasons.NODE_NOT_READY),
        (pod(NEW, labels=PREPARING), "True", reasons.HOOK),
        (pod(NEW, scheduled=False, conditions=(PENDING,)), "True", reasons.UNSCHEDULABLE),
        (pod(NEW, waiting="ImagePullBackOff"), "True", "ImagePullBackOff"),
        (pod(NEW, waiting="ImagePullBackOff"), "False", "ImagePullBackOff"),
        (pod(NEW, waiting="CrashLoopBackOff"), "True", "CrashLoopBackOff"),
        (pod(NEW, waiting="ContainerCreating"), "True", reasons.STARTING),
        (pod(NEW, waiting="odd reason, {}"), "True", reasons.NOT_READY),
        (pod(NEW, since=NOW), "True", reasons.MIN_READY),
        (pod(NEW, ready=False), "False", reasons.NODE_NOT_READY),
        (pod(NEW, ready=False), "True", reasons.NOT_READY),
        (pod(NEW, scheduled=False), "True", reasons.STARTING),
    ],
)
def test_the_nearest_cause_is_named(found: Pod, ready: str, code: str) -> None:
    assert explain_pod(found, node("n1", ready=ready)).code == code


def test_the_words_of_the_scheduler_are_passed_on() -> None:
    reason = explain_pod(pod(NEW, scheduled=False, conditions=(PENDING,)), node("n1"))
    assert reason.text == "pod agent-n1-v2 is not scheduled: 0/5 nodes are available: no cpu"


def test_a_container_that_ended_is_named_with_its_exit_code() -> None:
    found = pod(NEW, ready=False)
    ended = ContainerState(terminated=StateTerminated(137, "OOMKilled"))
    status = msgspec.structs.replace(
        found.status, container_statuses=(ContainerStatus("agent", state=ended),)
    )
    reason = explain_pod(msgspec.structs.replace(found, status=status), node("n1"))
    assert (reason.code, reason.text) == ("OOMKilled", "container agent ended with exit code 137")


def test_texts_are_one_short_line() -> None:
    assert shorten("a\n  b") == "a b"
    assert len(shorten("x" * 9999)) == 200
    assert shorten("x" * 9999).endswith("…")


def test_no_code_is_both_quiet_and_moving() -> None:
    assert not reasons.IDLE_CODES & reasons.PROGRESSING_CODES
