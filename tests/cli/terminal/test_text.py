from __future__ import annotations

import pytest

from everynode.cli.terminal.text import (
    format_count,
    format_duration,
    parse_duration,
    parse_node_count,
)
from everynode.errors import UserError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20s", 20),
        ("20", 20),
        ("1m30s", 90),
        ("2h", 7200),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("0", 0),
    ],
)
def test_durations_as_people_type_them(text: str, seconds: float) -> None:
    assert parse_duration("--start", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 s", "5d", "1s!", "25h", "nan", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--start"):
        parse_duration("--start", text)


@pytest.mark.parametrize(
    ("text", "nodes"), [("0", 0), ("7", 7), ("3%", 15), ("0%", 0), ("100%", 500), ("1%", 5)]
)
def test_shares_of_500_nodes(text: str, nodes: int) -> None:
    assert parse_node_count("--fail", text, 500) == nodes


def test_percentages_are_rounded_up() -> None:
    assert parse_node_count("--fail", "1%", 10) == 1


@pytest.mark.parametrize("text", ["x", "", "-1", "501", "101%", "1.5", "3 %"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--fail"):
        parse_node_count("--fail", text, 500)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.4 s"),
        (7.5, "7.5 s"),
        (42.4, "42 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (7203, "2 h"),
        (367200, "4 d 6 h"),
    ],
)
def test_durations_as_people_read_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_one_is_not_many() -> None:
    assert [format_count(number, "node") for number in (0, 1, 1234)] == [
        "0 nodes",
        "1 node",
        "1,234 nodes",
    ]
