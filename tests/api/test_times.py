from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.times import (
    TimeError,
    format_micro_time,
    format_time,
    human_duration,
    parse_time,
    seconds,
)

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY

# From year 1 to year 9999.
moments = st.integers(-62_135_596_800, 253_402_300_799)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-07-04T12:30:05Z", 1783168205),
        ("2026-07-04T14:30:05+02:00", 1783168205),
        ("2026-07-04T12:30:05.25Z", 1783168205.25),
        ("1969-12-31T23:59:59Z", -1),
    ],
)
def test_times_are_read_in_any_zone(text: str, expected: float) -> None:
    assert parse_time(text) == expected


def test_nanoseconds_are_cut_to_microseconds() -> None:
    assert parse_time("1970-01-01T00:00:00.123456789Z") == pytest.approx(0.123456)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-07-04",
        "2026-07-04T12:30:05",
        "2026-07-04 12:30:05Z",
        "2026-13-04T12:30:05Z",
        "2026-07-04T12:30:60Z",
        "2026-07-04T12:30:05Z\n",
        "٢٠٢٦-07-04T12:30:05Z",
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(TimeError, match="such as 2006-01-02T15:04:05Z"):
        parse_time(text)


def test_a_time_is_written_in_whole_seconds_of_utc() -> None:
    assert format_time(1783168205.999) == "2026-07-04T12:30:05Z"


def test_a_microtime_always_has_six_digits() -> None:
    assert format_micro_time(1783168205) == "2026-07-04T12:30:05.000000Z"
    assert format_micro_time(1783168205.25) == "2026-07-04T12:30:05.250000Z"


@pytest.mark.parametrize("moment", [1e12, -1e12])
def test_a_number_beyond_the_calendar_is_refused(moment: float) -> None:
    with pytest.raises(TimeError, match="from 1 to 9999"):
        format_time(moment)


@given(moments)
def test_a_time_survives_being_written(moment: int) -> None:
    assert parse_time(format_time(moment)) == moment
    assert parse_time(format_micro_time(moment)) == moment


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_a_microtime_survives_being_written(whole: int, micros: int) -> None:
    written = format_micro_time(whole + micros / 10**6)
    assert written == f"{format_time(whole)[:-1]}.{micros:06}Z"
    assert format_micro_time(parse_time(written)) == written


def test_seconds_count_from_the_epoch_and_nothing_has_none() -> None:
    west = timezone(timedelta(hours=-5))
    assert seconds(datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)) == 1.5
    assert seconds(datetime(1970, 1, 1, tzinfo=west)) == 5 * HOUR
    assert seconds(datetime(1970, 1, 1, 0, 0, 1)) == 1  # noqa: DTZ001 - a clock without a zone
    assert seconds(None) is None


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 30 * MINUTE, "8h"),
        (48 * HOUR - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + DAY, "8y"),
    ],
)
def test_durations_are_shortened_as_kubectl_does(length: float, text: str) -> None:
    assert human_duration(length) == text
