"""The back-off formula: doubles with every failure, up to a limit."""

from __future__ import annotations

from everynode.backoff import Backoff


def test_the_delay_doubles_up_to_its_limit() -> None:
    backoff = Backoff(first=0.5, longest=3.0)
    assert [backoff.delay(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_very_many_failures_do_not_overflow() -> None:
    assert Backoff(first=1.0, longest=300.0).delay(1_000_000) == 300.0
