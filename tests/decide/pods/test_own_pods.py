from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.decide.pods.own_pods import OwnPods, age_order
from tests.support.fleet import NEW, NOW, OLD, pod

PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}


def test_each_pod_is_in_one_group() -> None:
    active = pod(NEW, name="a")
    preparing = pod(OLD, name="b", labels=PREPARING)
    terminating = pod(OLD, name="c", deleting=NOW)
    finished = pod(OLD, name="d", phase="Succeeded")
    finished_terminating = pod(OLD, name="e", phase="Failed", deleting=NOW)
    pods = OwnPods((finished_terminating, finished, terminating, preparing, active))
    assert pods.active == (active,)
    assert pods.preparing == (preparing,)
    assert pods.terminating == (terminating,)
    assert pods.finished == (finished,)
    assert pods.finished_terminating == (finished_terminating,)
    assert pods.leaving == (preparing, terminating)
    assert pods.all_finished == (finished, finished_terminating)


def test_scheduled_pods_are_senior_then_the_older_then_the_first_by_name() -> None:
    pending = pod(name="a", scheduled=False, created=NOW - 900)
    old, young = pod(name="z", created=NOW - 800), pod(name="b", created=NOW - 100)
    twin = pod(name="c", created=NOW - 100)
    assert sorted((twin, young, pending, old), key=age_order) == [old, young, twin, pending]


def test_of_two_pods_of_one_second_the_ready_one_is_senior() -> None:
    surge = pod(NEW, name="a", created=NOW - 1, ready=False)
    old = pod(OLD, name="b", created=NOW - 1)
    assert sorted((surge, old), key=age_order) == [old, surge]


def test_a_time_without_a_zone_is_as_good_as_any() -> None:
    plain = pod(name="a", created=NOW - 500)
    naive = plain.metadata.creation_timestamp
    assert naive is not None
    meta = msgspec.structs.replace(
        plain.metadata, name="b", creation_timestamp=naive.replace(tzinfo=None)
    )
    twin = msgspec.structs.replace(plain, metadata=meta)
    assert sorted((twin, plain), key=age_order) == [plain, twin]


def test_the_oldest_pod_represents_the_node_unless_it_is_finished_and_terminating() -> None:
    finished_terminating = pod(name="a", phase="Failed", deleting=NOW, created=NOW - 900)
    going = pod(name="b", deleting=NOW, created=NOW - 800)
    pods = OwnPods((pod(name="c", created=NOW - 10), going, finished_terminating))
    assert pods.primary == going
    assert OwnPods((finished_terminating,)).primary is None
