"""Whether a node has room for a pod of the target."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.decide.node.room import FRESH_SECONDS, Room, check_room, requests_grow
from tests.support.fleet import NEW, NOW, OLD, template

ALLOCATABLE = {"cpu": 1000, "memory": 1 << 30, "pods": 10}


def room(**more: Any) -> Room:
    given: dict[str, Any] = {
        "requests": {"cpu": 150},
        "allocatable": ALLOCATABLE,
        "used": {"cpu": 800, "pods": 4},
        "own": {"old": {"cpu": 100, "pods": 1}},
    }
    return Room(NEW, NOW, **(given | more))


def cpu(amount: str, **more: Any) -> bytes:
    requests = {"cpu": amount} | more
    return template(containers=[{"name": "a", "image": "a", "resources": {"requests": requests}}])


def test_the_pod_that_goes_first_leaves_its_room() -> None:
    assert room().shortages("old") == ()
    [short] = room().shortages("")
    assert str(short) == "Insufficient cpu: 150m needed, 100m free"
    [short] = room(used={"cpu": 880}).shortages("old")
    assert str(short) == "Insufficient cpu: 150m needed, 120m free"


def test_a_pod_beside_another_one_counts_among_the_pods() -> None:
    full = room(requests={}, used={"pods": 9})
    assert full.shortages("old") == ()
    assert [str(each) for each in full.shortages("")] == ["Too many pods"]


def test_pods_of_lower_priority_give_way_if_that_is_enough() -> None:
    used = {"cpu": 880, "pods": 4}
    assert room(used=used, preemptible={"cpu": 30, "pods": 1}).shortages("old") == ()
    assert room(used=used, preemptible={"cpu": 29, "pods": 1}).shortages("old") != ()
    crowded = room(requests={}, used={"pods": 9})
    assert crowded.shortages("") != ()
    assert room(requests={}, used={"pods": 9}, preemptible={"pods": 1}).shortages("") == ()


def test_a_node_of_which_nothing_is_known_is_not_full() -> None:
    assert room(allocatable={}).shortages("old") == ()
    assert room(used={"cpu": 5000}, unknown=True).shortages("old") == ()


def test_a_resource_that_the_old_pod_got_from_elsewhere_is_not_missed() -> None:
    wanted = {"cpu": 150, "example.com/nic": 1}
    assert [each.name for each in room(requests=wanted).shortages("old")] == ["example.com/nic"]
    own = {"old": {"cpu": 100, "example.com/nic": 1}}
    assert room(requests=wanted, own=own).shortages("old") == ()


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 10.0), (2, 20.0), (5, 160.0), (6, 300.0), (99, 300.0)]
)
def test_a_full_node_is_observed_again_later_and_later(attempt: int, seconds: float) -> None:
    full = room(used={"cpu": 1000}, attempt=attempt)
    check = check_room(full, NEW, "old", NOW + seconds - 1)
    assert (check.outdated, check.until) == (False, NOW + seconds)
    assert check.missing == "Insufficient cpu: 150m needed, 0 free"
    again = check_room(full, NEW, "old", NOW + seconds)
    assert (again.outdated, again.missing) == (True, check.missing)


def test_a_node_with_room_is_relied_on_for_some_seconds() -> None:
    check = check_room(room(), NEW, "old", NOW + FRESH_SECONDS - 1)
    assert (check.missing, check.outdated, check.until) == ("", False, NOW + FRESH_SECONDS)
    assert check_room(room(), NEW, "old", NOW + FRESH_SECONDS).outdated


def test_what_was_observed_for_another_target_says_nothing() -> None:
    assert check_room(room(), OLD, "old", NOW).outdated
    assert check_room(None, NEW, "old", NOW).outdated


@pytest.mark.parametrize(
    ("before", "after", "grows"),
    [
        (cpu("100m"), cpu("150m"), True),
        (cpu("100m"), cpu("0.1"), False),
        (cpu("100m"), cpu("50m", memory="1Mi"), True),
        (cpu("100m"), template(), False),
        (template(), cpu("1m"), True),
        (b"[]", cpu("1m"), True),
        (cpu("1m"), b"{", False),
    ],
)
def test_requests_grow_if_more_of_any_resource_is_requested(
    before: bytes, after: bytes, grows: bool
) -> None:
    assert requests_grow(before, after) is grows
