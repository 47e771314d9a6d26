from __future__ import annotations

import pytest

from everynode.cluster.deadlines import allowed_seconds, parse_duration
from everynode.cluster.errors import Refusal
from everynode.kube.requests import Request


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5s", 1.5), ("1h0m0s", 3600.0), ("0", 0.0)],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5", "s", "5x", "5s5", "-5s"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Refusal, match="is no duration"):
        parse_duration(text)


def test_only_writes_have_a_deadline() -> None:
    query = (("timeout", "5s"),)
    assert allowed_seconds(Request("GET", "/x", query)) is None
    assert allowed_seconds(Request("POST", "/x", query)) == 5.0
    assert allowed_seconds(Request("POST", "/x")) is None
