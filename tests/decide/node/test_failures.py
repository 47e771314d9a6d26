from __future__ import annotations

import msgspec
import pytest

from everynode.api.objects import Condition, Pod
from everynode.decide.node.failures import (
    count_failures,
    ended_at,
    is_record_valid,
    replace_at,
    write_failures,
)
from tests.support.fleet import NEW, NOW, at, pod


def failed(failures: str = "", *, lived: float = 10) -> Pod:
    return pod(phase="Failed", ended=NOW, created=NOW - lived, failures=failures)


@pytest.mark.parametrize(
    ("before", "delay"), [(0, 1), (1, 2), (2, 4), (9, 512), (10, 900), (11, 900), (999_999, 900)]
)
def test_the_delay_doubles_from_one_second_to_a_quarter_of_an_hour(before: int, delay: int) -> None:
    carried = write_failures(before, NEW) if before else ""
    assert replace_at(failed(carried), NEW) == NOW + delay


def test_failures_add_up_from_pod_to_pod() -> None:
    first = count_failures(failed(), NEW)
    second = count_failures(failed(write_failures(first, NEW)), NEW)
    assert (first, second) == (1, 2)


def test_failures_are_forgotten_after_half_an_hour_without_one() -> None:
    assert count_failures(failed("7@v2", lived=1799), NEW) == 8
    assert count_failures(failed("7@v2", lived=1800), NEW) == 1


def test_failures_are_forgotten_with_a_new_target() -> None:
    assert count_failures(failed("7@v1"), NEW) == 1


@pytest.mark.parametrize("text", ["nonsense", "-1@v2", "3", "@v2", "3@", "9999999@v2"])
def test_a_record_that_makes_no_sense_counts_as_none(text: str) -> None:
    assert not is_record_valid(failed(text))
    assert count_failures(failed(text), NEW) == 1


def test_what_we_write_can_be_read() -> None:
    assert is_record_valid(failed(write_failures(3, NEW)))
    assert is_record_valid(failed())


def test_without_a_container_the_end_is_the_last_that_was_heard() -> None:
    said = Condition("Ready", "False", last_transition_time=at(NOW - 7))
    ended = failed()
    status = msgspec.structs.replace(ended.status, container_statuses=(), conditions=(said,))
    assert ended_at(msgspec.structs.replace(ended, status=status)) == NOW - 7
    status = msgspec.structs.replace(status, conditions=())
    assert ended_at(msgspec.structs.replace(ended, status=status)) == NOW - 10
    status = msgspec.structs.replace(status, start_time=None)
    assert ended_at(msgspec.structs.replace(ended, status=status)) == NOW - 10


def test_a_pod_ended_no_earlier_than_it_was_created_though_its_node_is_behind() -> None:
    behind = failed("3@v2", lived=-3600)
    assert ended_at(behind) == NOW + 3600
    assert replace_at(behind, NEW) == NOW + 3600 + 8


def test_an_end_in_the_future_counts_from_when_it_was_seen_and_forgives_nothing() -> None:
    ahead = ((NOW, NOW - 3599),)
    early = failed("3@v2", lived=3600)
    assert count_failures(early, NEW) == 1
    assert count_failures(early, NEW, ahead) == 4
    assert replace_at(early, NEW, ahead) == NOW - 3599 + 8
