from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.decide.pods import Pods, seniority
from tests.decide.fleet import NEW, NOW, OLD, pod

PREPARING = {keys.LIFECYCLE_STATE: keys.PREPARING_DELETE}


def test_each_pod_is_in_one_group() -> None:
    staying = pod(NEW, name="a")
    preparing = pod(OLD, name="b", labels=PREPARING)
    terminating = pod(OLD, name="c", deleting=NOW)
    finished = pod(OLD, name="d", phase="Succeeded")
    gone = pod(OLD, name="e", phase="Failed", deleting=NOW)
    pods = Pods((gone, finished, terminating, preparing, staying))
    assert pods.staying == (staying,)
    assert pods.preparing == (preparing,)
    assert pods.terminating == (terminating,)
    assert pods.finished == (finished,)
    assert pods.gone == (gone,)
    assert pods.leaving == (preparing, terminating)
    assert pods.ended == (finished, gone)


def test_scheduled_pods_are_senior_then_the_older_then_the_first_by_name() -> None:
    pending = pod(name="a", scheduled=False, created=NOW - 900)
    old, young = pod(name="z", created=NOW - 800), pod(name="b", created=NOW - 100)
    twin = pod(name="c", created=NOW - 100)
    assert sorted((twin, young, pending, old), key=seniority) == [old, young, twin, pending]


def test_a_time_without_a_zone_is_as_good_as_any() -> None:
    plain = pod(name="a", created=NOW - 500)
    naive = plain.metadata.creation_timestamp
    assert naive is not None
    meta = msgspec.structs.replace(
        plain.metadata, name="b", creation_timestamp=naive.replace(tzinfo=None)
    )
    twin = msgspec.structs.replace(plain, metadata=meta)
    assert sorted((twin, plain), key=seniority) == [plain, twin]


def test_the_senior_stands_for_the_node_unless_it_is_as_good_as_gone() -> None:
    gone = pod(name="a", phase="Failed", deleting=NOW, created=NOW - 900)
    going = pod(name="b", deleting=NOW, created=NOW - 800)
    pods = Pods((pod(name="c", created=NOW - 10), going, gone))
    assert pods.senior == going
    assert Pods((gone,)).senior is None
