"""Behaviour: parsing its settings."""

from __future__ import annotations

import pytest

from everynode.components.kubelet.behaviour import (
    Behaviour,
    BehaviourError,
    BehaviourOverrides,
    ImageOverrides,
    parse_clock_offset,
    parse_images,
    parse_overrides,
    parse_slow_factor,
)


def test_words_come_in_any_order() -> None:
    assert parse_overrides("start=5 fail=crash pull=0.5") == BehaviourOverrides(
        "crash", pull=0.5, start=5.0
    )
    assert parse_overrides("") == BehaviourOverrides()


@pytest.mark.parametrize("text", ["fail=sometimes", "start", "start=soon", "stop=-1", "x=1"])
def test_other_words_are_refused_with_the_ones_that_would_do(text: str) -> None:
    with pytest.raises(BehaviourError, match=r"SECONDS|give seconds"):
        parse_overrides(text)


@pytest.mark.parametrize(
    ("image", "fail"),
    [
        ("registry.example/agent:non-existent", "pull"),
        ("non-existent/agent", "pull"),
        ("agent:crash-loop", "crash"),
        ("agent:never-ready", "probe"),
        ("agent:run-once", "exit"),
        ("agent:v1", ""),
    ],
)
def test_an_image_may_say_by_its_name_that_it_fails(image: str, fail: str) -> None:
    assert ImageOverrides().of(image, "n").fail == fail


def test_an_image_configuration_overrides_the_name_and_the_last_line_counts() -> None:
    quirks, faults = parse_images(
        "# a comment\n\nagent:* fail=crash start=3\nagent:v2 fail=none\nbad:v1 fail=perhaps\n"
    )
    assert quirks.of("agent:v1", "n") == BehaviourOverrides("crash", start=3.0)
    assert quirks.of("agent:v2", "n").fail == "none"
    assert quirks.of("other:v1", "n") == BehaviourOverrides()
    assert [fault.partition(":")[0] for fault in faults] == ["bad"]


def test_a_line_may_be_limited_to_nodes() -> None:
    overrides, errors = parse_images("agent:v1 fail=crash on=a,b\nagent:v2 on= fail=pull\n")
    assert [overrides.of("agent:v1", node).fail for node in "abc"] == ["crash", "crash", ""]
    assert errors == ["agent:v2: 'on=' names no node: use on=NODE,NODE"]


@pytest.mark.parametrize(("text", "factor"), [("5", 5.0), ("0.5", 0.5), ("x", 1.0), ("-3", 1.0)])
def test_a_factor_that_makes_no_sense_changes_nothing(text: str, factor: float) -> None:
    assert parse_slow_factor(text) == factor


def test_back_off_doubles_up_to_its_longest() -> None:
    behaviour = Behaviour(back_off=(10.0, 300.0))
    assert [behaviour.back_off_after(count) for count in (1, 2, 3, 6, 50)] == [
        10.0,
        20.0,
        40.0,
        300.0,
        300.0,
    ]


@pytest.mark.parametrize(
    ("text", "offset"), [("", 0.0), ("-3600", -3600.0), ("180", 180.0), ("x", 0.0), ("1e9", 0.0)]
)
def test_the_clock_of_a_node_is_off_by_at_most_a_day(text: str, offset: float) -> None:
    assert parse_clock_offset(text) == offset
