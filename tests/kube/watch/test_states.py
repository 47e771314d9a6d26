"""Every transition of a list+watch, as a table."""

from __future__ import annotations

import pytest

from everynode.kube.errors import (
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotServed,
    RequestInfo,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from everynode.kube.watch.states import (
    BACKOFF,
    MAX_REFUSALS,
    Broken,
    Ended,
    ListComplete,
    Outcome,
    PageRead,
    Position,
    Refused,
    Silent,
    WatchState,
    advance,
)

STREAM = Position()
LIST = Position(WatchState.LIST, watch_list=False)
SECOND_PAGE = Position(WatchState.LIST, token="2", watch_list=False)
WATCH = Position(WatchState.WATCH, "7")
POLLED = Position(WatchState.WATCH, "7", watch_list=False)  # of a server without watch-list
TIRED = Position(WatchState.WATCH, "7", failures=MAX_REFUSALS)


def refusal(kind: type[KubeError], code: int) -> KubeError:
    return kind("no", status=code, request_info=RequestInfo("watch", "pods"))


@pytest.mark.parametrize(
    ("position", "outcome", "state", "version", "token", "watch_list"),
    [
        # All goes well.
        (STREAM, ListComplete("9"), WatchState.WATCH, "9", "", True),
        (LIST, PageRead("9", "2"), WatchState.LIST, "", "2", False),
        (SECOND_PAGE, PageRead("9", "3"), WatchState.LIST, "", "3", False),
        (SECOND_PAGE, PageRead("9"), WatchState.WATCH, "9", "", False),
        (WATCH, Ended("9", 300, True), WatchState.WATCH, "9", "", True),
        (WATCH, Ended("7", 300, False), WatchState.WATCH, "7", "", True),
        # Streams that stop.
        (WATCH, Ended("7", 0.1, False), WatchState.WATCH, "7", "", True),
        (WATCH, Silent("9"), WatchState.WATCH, "9", "", True),
        (WATCH, Broken("9", "reset"), WatchState.WATCH, "9", "", True),
        (STREAM, Ended("", 300, True), WatchState.LIST, "", "", False),
        (STREAM, Silent(""), WatchState.LIST, "", "", False),
        (STREAM, Broken("8", "reset", True), WatchState.WATCH_LIST, "", "", True),
        (SECOND_PAGE, Broken("", "reset"), WatchState.LIST, "", "2", False),
        # Refusals of the initial stream.
        (STREAM, Refused("", refusal(Invalid, 422)), WatchState.LIST, "", "", False),
        (STREAM, Refused("", refusal(Invalid, 400)), WatchState.LIST, "", "", False),
        (STREAM, Refused("", refusal(Forbidden, 403)), WatchState.WATCH_LIST, "", "", True),
        (STREAM, Refused("", refusal(TooManyRequests, 429)), WatchState.WATCH_LIST, "", "", True),
        (STREAM, Refused("", refusal(Unavailable, 500)), WatchState.LIST, "", "", True),
        (STREAM, Refused("", refusal(Unavailable, 503)), WatchState.LIST, "", "", True),
        (STREAM, Refused("", refusal(NotServed, 404)), WatchState.WATCH_LIST, "", "", True),
        # Refusals of pages.
        (SECOND_PAGE, Refused("", refusal(Gone, 410)), WatchState.LIST, "", "", False),
        (SECOND_PAGE, Refused("", refusal(Unavailable, 500)), WatchState.LIST, "", "2", False),
        (LIST, Refused("", refusal(Invalid, 400)), WatchState.LIST, "", "", False),
        # Refusals of watches.
        (WATCH, Refused("9", refusal(Gone, 410)), WatchState.WATCH_LIST, "", "", True),
        (POLLED, Refused("9", refusal(Gone, 410)), WatchState.LIST, "", "", False),
        (WATCH, Refused("9", refusal(NotServed, 404)), WatchState.WATCH_LIST, "", "", True),
        (WATCH, Refused("9", refusal(Unavailable, 500)), WatchState.WATCH, "9", "", True),
        (WATCH, Refused("9", refusal(Unauthorized, 401)), WatchState.WATCH, "9", "", True),
        # A server that is there and refuses our version again and again has lost it.
        (TIRED, Refused("7", refusal(Unavailable, 504)), WatchState.WATCH_LIST, "", "", True),
        (TIRED, Refused("7", refusal(Invalid, 400)), WatchState.WATCH_LIST, "", "", True),
        # One that is overloaded, gone or shut says nothing about the version.
        (TIRED, Refused("7", refusal(Unavailable, 503)), WatchState.WATCH, "7", "", True),
        (TIRED, Refused("7", refusal(Forbidden, 403)), WatchState.WATCH, "7", "", True),
        (TIRED, Broken("7", "refused"), WatchState.WATCH, "7", "", True),
    ],
)
def test_transitions(
    *,
    position: Position,
    outcome: Outcome,
    state: WatchState,
    version: str,
    token: str,
    watch_list: bool,
) -> None:
    after = advance(position, outcome).position
    assert (after.state, after.version, after.token) == (state, version, token)
    assert after.watch_list is watch_list


@pytest.mark.parametrize(
    "outcome",
    [
        ListComplete("9"),
        PageRead("9"),
        PageRead("9", "2"),
        Ended("9", 300, True),
        Ended("9", 2, False),
    ],
)
def test_success_forgets_the_failures_and_asks_again_at_once(outcome: Outcome) -> None:
    state = WatchState.LIST if isinstance(outcome, PageRead) else WatchState.WATCH
    step = advance(Position(state, "7", failures=4), outcome)
    assert (step.position.failures, step.pause, step.trouble) == (0, 0.0, "")


@pytest.mark.parametrize(
    "outcome",
    [
        Ended("7", 0.1, False),
        Broken("7", "reset"),
        Refused("7", refusal(Unavailable, 503)),
        Refused("7", refusal(Forbidden, 403)),
        Refused("7", refusal(Gone, 410)),
    ],
)
def test_failures_in_a_row_take_longer_and_longer_pauses(outcome: Outcome) -> None:
    pauses, position = [], Position(WatchState.WATCH, "7", failures=1)
    for _ in range(8):
        step = advance(position, outcome)
        pauses.append(step.pause)
        position = Position(WatchState.WATCH, "7", failures=step.position.failures)
    assert pauses == sorted(pauses)
    assert pauses[0] > 0
    assert pauses[-1] == BACKOFF.longest


def test_an_event_on_the_stream_resets_the_failure_count() -> None:
    step = advance(Position(WatchState.WATCH, "7", failures=6), Broken("9", "reset", received=True))
    assert step.position.failures == 1
    assert step.pause == BACKOFF.delay(1)


def test_an_expired_version_is_not_reported_the_first_time() -> None:
    first = advance(WATCH, Refused("7", refusal(Gone, 410)))
    assert (first.pause, first.trouble) == (0.0, "")
    again = advance(first.position, Refused("", refusal(Gone, 410)))
    assert again.pause > 0
    assert again.trouble


def test_the_pause_the_server_asks_for_is_kept_within_reason() -> None:
    def asked_for(seconds: float) -> float:
        error = TooManyRequests("slow down", status=429, retry_after=seconds)
        return advance(WATCH, Refused("7", error)).at_least

    assert (asked_for(17), asked_for(86_400)) == (17, 60)
