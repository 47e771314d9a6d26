from __future__ import annotations

import pytest

from everynode.apiserver.errors import StatusError
from everynode.apiserver.request.timeout import parse_duration, write_timeout
from everynode.kube.requests import Request


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("1h0m0s", 3600.0),
        ("0", 0.0),
        ("-5s", -5.0),
        ("+5s", 5.0),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5", "s", "5x", "5s5", "-", ".s", ""])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(StatusError, match="invalid timeout specified in the request URL - time: "):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5", 'missing unit in duration "5"'),
        ("5x", 'unknown unit "x" in duration "5x"'),
        ("soon", 'invalid duration "soon"'),
        ("9999999h", 'invalid duration "9999999h"'),
    ],
)
def test_a_read_with_a_bad_timeout_is_refused_too(text: str, why: str) -> None:
    with pytest.raises(StatusError, match=f"URL - time: {why}"):
        write_timeout(Request("GET", "/version", (("timeout", text),)))


@pytest.mark.parametrize("text", ["0", "0s", "-1s"])
def test_no_time_at_all_means_that_it_does_not_matter(text: str) -> None:
    assert write_timeout(Request("POST", "/x", (("timeout", text),))) is None


def test_only_writes_have_a_deadline() -> None:
    query = (("timeout", "5s"),)
    assert write_timeout(Request("GET", "/x", query)) is None
    assert write_timeout(Request("POST", "/x", query)) == 5.0
    assert write_timeout(Request("POST", "/x")) is None
