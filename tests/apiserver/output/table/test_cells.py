from __future__ import annotations

import pytest

from everynode.apiserver.output.table.cells import format_age, labels_text, selector_text


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("1970-01-01T00:00:00Z", "16m"),
        ("1970-01-01T00:16:39.500000Z", "0s"),
        ("1970-01-02T00:00:00Z", "<invalid>"),
        ("yesterday", "<invalid>"),
    ],
)
def test_times_are_shown_as_ages(time: str | None, shown: str) -> None:
    assert format_age(time, 1000.0) == shown


def test_labels_are_shown_by_name() -> None:
    assert labels_text({"b": "1", "a": "2"}) == "a=2,b=1"
    assert labels_text({}) == "<none>"


def test_a_selector_that_makes_no_sense_is_called_so() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    assert selector_text(broken, empty="", invalid="<error>") == "<error>"
    assert selector_text(None, empty="<none>", invalid="<error>") == "<none>"
