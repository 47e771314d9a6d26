"""Where a list+watch stands and where it goes next, as one pure table of transitions.

The server promises: a list carries a resource version; a watch from a version delivers every later
change in order, until it ends, breaks, or says that the version is too old (410). Out of that
promise and every way in which it fails, these three states keep a complete copy of a collection.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec
from msgspec.structs import replace

from everynode.kube.errors import Gone, Invalid, KubeError, NotFound

FIRST_PAUSE: Final = 0.25
# Short, so that we are back within seconds of the server's return.
LONGEST_PAUSE: Final = 5.0
# A server that asks for more than this is asked again all the same.
LONGEST_ASKED: Final = 60.0
# A watch that ends sooner than this with nothing in it is a failure, not a timeout.
SHORTEST_WATCH: Final = 1.0
# Refusals in a row after which a version is given up: it may lie in a future the server lost.
PATIENCE: Final = 5


class State(enum.Enum):
    """What is asked of the server next."""

    # One request that streams what is there now and then every change; the place to begin.
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
    # or refused PATIENCE times in a row by a server that is there: from the beginning.
    WATCH = "watch"


class Position(msgspec.Struct, frozen=True):
    """Where we stand."""

    state: State = State.WATCH_LIST
    version: str = ""  # in WATCH: the last one heard
    token: str = ""  # in LIST: of the next page, empty for the first
    failures: int = 0  # in a row
    streams: bool = True  # whether the server may know watch-list

    def restarted(self) -> Position:
        """Return the beginning."""
        start = State.WATCH_LIST if self.streams else State.LIST
        return Position(start, failures=self.failures, streams=self.streams)


# --- What can happen -------------------------------------------------------------------------


class PageRead(msgspec.Struct, frozen=True):
    """A page of the list came; an empty token says that it was the last."""

    version: str
    token: str = ""


class Complete(msgspec.Struct, frozen=True):
    """The initial events of a watch-list are over; the same stream goes on with changes."""

    version: str


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream cleanly."""

    version: str
    seconds: float
    heard: bool  # whether anything came


class Silent(msgspec.Struct, frozen=True):
    """Nothing was heard for so long that the connection must be taken for dead."""

    version: str


class Broken(msgspec.Struct, frozen=True):
    """The connection broke, or could not be made."""

    version: str
    message: str
    heard: bool = False


class Refused(msgspec.Struct, frozen=True):
    """The server answered with an error, at once or as the last event of a stream."""

    version: str
    error: KubeError
    heard: bool = False


Outcome = PageRead | Complete | Ended | Silent | Broken | Refused


class Step(msgspec.Struct, frozen=True):
    """Where to go, after which pause, and what a person should know of it."""

    position: Position
    pause: float = 0.0  # the caller draws between half of it and the whole
    at_least: float = 0.0  # the pause the server asked for
    trouble: str = ""
    reason: str = ""  # one word for the metric of restarts; empty while all goes well


def advance(position: Position, outcome: Outcome) -> Step:
    """Decide what to ask next, given what came of the last request."""
    match outcome:
        case PageRead(version, ""):
            return Step(Position(State.WATCH, version, streams=position.streams))
        case PageRead(_, token):
            return Step(replace(position, token=token, failures=0))
        case Complete(version):
            return Step(Position(State.WATCH, version, streams=position.streams))
        case Ended():
            return _ended(position, outcome)
        case Silent(version):
            return _silent(position, version)
        case Broken(version, message, heard):
            failed = _failed(_at(position, version), heard=heard)
            # Connections break every day; only when the next one does too is it worth a word.
            trouble = message if failed.failures > 1 else ""
            pause = backoff(failed.failures)
            return Step(failed, pause, trouble=trouble, reason="broken")
        case Refused():
            return _refused(position, outcome)


def backoff(failures: int) -> float:
    """Return the longest pause after so many failures in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 10))


def _ended(position: Position, outcome: Ended) -> Step:
    if position.state is State.WATCH_LIST:
        return _without_streams(position, "the server ended its list before it was complete")
    if outcome.heard or outcome.seconds >= SHORTEST_WATCH:
        return Step(replace(position, version=outcome.version, failures=0))
    failed = _failed(position, heard=False)
    # Once is what a server does that stops or starts; only again and again is it trouble.
    trouble = "the server ends watches as soon as they begin" if failed.failures > 2 else ""
    return Step(failed, backoff(failed.failures), trouble=trouble, reason="short")


def _silent(position: Position, version: str) -> Step:
    if position.state is State.WATCH_LIST:
        return _without_streams(position, "the server fell silent before its list was complete")
    return Step(_at(position, version), reason="silent")


def _without_streams(position: Position, trouble: str) -> Step:
    start = Position(State.LIST, failures=position.failures, streams=False)
    return Step(start, trouble=trouble, reason="no-watch-list")


def _refused(position: Position, outcome: Refused) -> Step:
    error = outcome.error
    if position.state is State.WATCH_LIST and isinstance(error, Invalid):
        return Step(Position(State.LIST, streams=False), reason="no-watch-list")
    if position.state is State.WATCH_LIST and error.status >= 500:
        # Some servers know the request and cannot serve it; whether they can list we shall see.
        return Step(replace(position, state=State.LIST), reason="no-watch-list")
    failed = _failed(_at(position, outcome.version), heard=outcome.heard)
    if isinstance(error, Gone) and failed.failures == 1:
        # An old version is an everyday matter: no word and no pause.
        return Step(failed.restarted(), reason="gone")
    anew = isinstance(error, Gone | NotFound) or _version_is_lost(failed, error)
    return Step(
        failed.restarted() if anew else failed,
        backoff(failed.failures),
        min(error.retry_after or 0.0, LONGEST_ASKED),
        str(error),
        "gone" if isinstance(error, Gone) else "refused",
    )


def _version_is_lost(position: Position, error: KubeError) -> bool:
    # After a restore the server may be behind our version and would refuse it for ever. A server
    # that is overloaded, or that does not let us in, says nothing about the version.
    meaningful = error.status in (400, 422, 500, 504)
    return position.state is State.WATCH and meaningful and position.failures >= PATIENCE


def _at(position: Position, version: str) -> Position:
    return replace(position, version=version) if position.state is State.WATCH else position


def _failed(position: Position, *, heard: bool) -> Position:
    return replace(position, failures=1 if heard else position.failures + 1)
