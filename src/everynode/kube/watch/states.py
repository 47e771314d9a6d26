"""List+watch state machine: a pure function from state and outcome to the next state.

The server guarantees that a list has a resource version, and that a watch from a version delivers
every later change in order, until it ends, breaks, or is refused because the version is too old
(410). These three states keep a complete copy of a collection, with a transition for every failure.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec
from msgspec.structs import replace

from everynode.backoff import Backoff
from everynode.kube.errors import Gone, Invalid, KubeError, NotFound

# Short, so that we watch again within seconds of the server's return.
BACKOFF: Final = Backoff(first=0.25, longest=5.0)
# A longer Retry-After of the server is shortened to this.
MAX_RETRY_AFTER: Final = 60.0
# A watch that ends sooner than this with nothing in it is a failure, not a timeout.
SHORTEST_WATCH: Final = 1.0
# Refusals in a row after which everything is listed again: the server may have been restored from
# a backup and be behind our version.
MAX_REFUSALS: Final = 5


class WatchState(enum.Enum):
    """Which request is sent next."""

    # The initial state: one request that streams the present objects, then every change.
    # Refused as invalid, ended or silent before the end of the initial events: LIST, and never
    # WATCH_LIST again. Refused because the server cannot (5xx): LIST, this time. Broken or refused
    # otherwise: once more, after a pause.
    WATCH_LIST = "watch-list"
    # Page after page of the most recent state, for servers without watch-list.
    # A page too old (410): from the first page. Broken or refused: the same page, after a pause.
    # After the last page: WATCH.
    LIST = "list"
    # Every change after `version`.
    # Ended: at once again. Silent: at once again. Broken: again after a pause. Version too old,
    # or refused MAX_REFUSALS times in a row by a server that responds: list everything again.
    WATCH = "watch"


class Position(msgspec.Struct, frozen=True):
    """The state, with the version or page token that the next request needs."""

    state: WatchState = WatchState.WATCH_LIST
    version: str = ""  # in WATCH: the last one received
    token: str = ""  # in LIST: of the next page, empty for the first
    failures: int = 0  # in a row
    watch_list: bool = True  # whether the server may support watch-list

    def restarted(self) -> Position:
        """Return the initial position: list everything again."""
        start = WatchState.WATCH_LIST if self.watch_list else WatchState.LIST
        return Position(start, failures=self.failures, watch_list=self.watch_list)


# --- Outcomes of a request -------------------------------------------------------------------


class PageRead(msgspec.Struct, frozen=True):
    """A page of the list was read; with an empty token it was the last."""

    version: str
    token: str = ""


class ListComplete(msgspec.Struct, frozen=True):
    """The initial events of a watch-list are over; the same stream goes on with changes."""

    version: str


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream cleanly."""

    version: str
    seconds: float
    received: bool  # whether any event was received


class Silent(msgspec.Struct, frozen=True):
    """Nothing was received for so long that the connection is considered dead."""

    version: str


class Broken(msgspec.Struct, frozen=True):
    """The connection broke, or could not be made."""

    version: str
    message: str
    received: bool = False


class Refused(msgspec.Struct, frozen=True):
    """The server responded with an error, at once or as the last event of a stream."""

    version: str
    error: KubeError
    received: bool = False


Outcome = PageRead | ListComplete | Ended | Silent | Broken | Refused


class Transition(msgspec.Struct, frozen=True):
    """The next position, the back-off before it, and a message for people."""

    position: Position
    pause: float = 0.0  # seconds; the caller adds jitter: between half of it and the whole
    at_least: float = 0.0  # the Retry-After of the server
    trouble: str = ""
    reason: str = ""  # one word for the metric of restarts; empty while all goes well


def advance(position: Position, outcome: Outcome) -> Transition:
    """Return the next step, given the outcome of the last request."""
    match outcome:
        case PageRead(version, ""):
            return Transition(Position(WatchState.WATCH, version, watch_list=position.watch_list))
        case PageRead(_, token):
            return Transition(replace(position, token=token, failures=0))
        case ListComplete(version):
            return Transition(Position(WatchState.WATCH, version, watch_list=position.watch_list))
        case Ended():
            return _after_end(position, outcome)
        case Silent(version):
            return _silent(position, version)
        case Broken(version, message, received):
            failed = _after_failure(_at_version(position, version), received=received)
            # One broken connection is ordinary; only a second one in a row is reported.
            trouble = message if failed.failures > 1 else ""
            pause = BACKOFF.delay(failed.failures)
            return Transition(failed, pause, trouble=trouble, reason="broken")
        case Refused():
            return _after_refusal(position, outcome)


def _after_end(position: Position, outcome: Ended) -> Transition:
    if position.state is WatchState.WATCH_LIST:
        return _without_watch_list(position, "the server ended its list before it was complete")
    if outcome.received or outcome.seconds >= SHORTEST_WATCH:
        return Transition(replace(position, version=outcome.version, failures=0))
    failed = _after_failure(position, received=False)
    # A server that stops or starts does this once or twice; it is reported from the third time.
    trouble = "the server ends watches as soon as they begin" if failed.failures > 2 else ""
    return Transition(failed, BACKOFF.delay(failed.failures), trouble=trouble, reason="short")


def _silent(position: Position, version: str) -> Transition:
    if position.state is WatchState.WATCH_LIST:
        return _without_watch_list(position, "the server fell silent before its list was complete")
    return Transition(_at_version(position, version), reason="silent")


def _without_watch_list(position: Position, trouble: str) -> Transition:
    start = Position(WatchState.LIST, failures=position.failures, watch_list=False)
    return Transition(start, trouble=trouble, reason="no-watch-list")


def _after_refusal(position: Position, outcome: Refused) -> Transition:
    error = outcome.error
    if position.state is WatchState.WATCH_LIST and isinstance(error, Invalid):
        return Transition(Position(WatchState.LIST, watch_list=False), reason="no-watch-list")
    if position.state is WatchState.WATCH_LIST and error.status >= 500:
        # Some servers accept the request and cannot serve it; they may be able to serve a list.
        return Transition(replace(position, state=WatchState.LIST), reason="no-watch-list")
    failed = _after_failure(_at_version(position, outcome.version), received=outcome.received)
    if isinstance(error, Gone) and failed.failures == 1:
        # An expired version is ordinary: it is not reported and needs no pause.
        return Transition(failed.restarted(), reason="gone")
    anew = isinstance(error, Gone | NotFound) or _version_is_lost(failed, error)
    return Transition(
        failed.restarted() if anew else failed,
        BACKOFF.delay(failed.failures),
        min(error.retry_after or 0.0, MAX_RETRY_AFTER),
        str(error),
        "gone" if isinstance(error, Gone) else "refused",
    )


def _version_is_lost(position: Position, error: KubeError) -> bool:
    # After a restore the server may be behind our version and would always refuse it. The
    # error of a server that is overloaded or refuses our credentials is not about the version.
    meaningful = error.status in (400, 422, 500, 504)
    return position.state is WatchState.WATCH and meaningful and position.failures >= MAX_REFUSALS


def _at_version(position: Position, version: str) -> Position:
    return replace(position, version=version) if position.state is WatchState.WATCH else position


def _after_failure(position: Position, *, received: bool) -> Position:
    return replace(position, failures=1 if received else position.failures + 1)
