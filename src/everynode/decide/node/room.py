"""Room (R4): whether a node has room for a pod of the target, before its old pod is taken.

What the other pods of a node request is not watched. The controller observes it when it matters,
and the decision takes what it observed as an input. If the observation fails,
the update goes on without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from everynode.api.resources import (
    PODS,
    Shortage,
    add_amounts,
    growing_resources,
    missing_room,
    pod_requests,
    read_spec,
)
from everynode.backoff import Backoff

FRESH_SECONDS: Final = 10.0  # how long a node that has room may be relied on to have it
REPEATED: Final = Backoff(first=10.0, longest=300.0)  # between observations of a full node

Requests = Mapping[str, int]


class Room(msgspec.Struct, frozen=True):
    """What was observed of a node: what it can allocate, and what its pods request."""

    revision: str  # the target it was observed for
    observed_at: float
    attempt: int = 1  # how often in a row; each time before there was no room
    unknown: bool = False  # it could not be observed: the update goes on without it
    requests: Requests = msgspec.field(default_factory=dict)  # of a pod of the target
    allocatable: Requests = msgspec.field(default_factory=dict)
    used: Requests = msgspec.field(default_factory=dict)  # by pods that are not our own
    preemptible: Requests = msgspec.field(default_factory=dict)  # of these, what would give way
    own: Mapping[str, Requests] = msgspec.field(default_factory=dict)  # by the uid of our pods
    reported: str = ""  # for readers: what the controller says that is missing

    def shortages(self, gives_way: str) -> tuple[Shortage, ...]:
        """Return what is missing for a pod of the target; `gives_way` is the pod that goes first.

        With surge no pod goes first (empty), and the pod itself has to be allowed for.
        """
        if self.unknown or not self.allocatable:
            return ()  # the node has not reported its size yet
        others = [amounts for uid, amounts in self.own.items() if uid != gives_way]
        used = add_amounts((self.used, *others))
        replaced = self.own.get(gives_way, {})
        wanted = {
            name: amount
            for name, amount in self.requests.items()
            # A resource that the old pod got from elsewhere (dynamic allocation) is left out.
            if name in self.allocatable or name not in replaced
        }
        if not gives_way:
            wanted[PODS] = 1
        missing = missing_room(self.allocatable, used, wanted)
        if not missing or not self.preemptible:
            return missing
        kept = {name: amount - self.preemptible.get(name, 0) for name, amount in used.items()}
        return missing if missing_room(self.allocatable, kept, wanted) else ()

    def has_room(self, *, surging: bool) -> bool:
        """Whether nothing is missing for a pod that replaces ours here, or comes beside it."""
        return not self.shortages("" if surging else next(iter(self.own), ""))


class RoomCheck(NamedTuple):
    """What is known of a node's room for a pod of the target."""

    missing: str = ""  # in the scheduler's words; empty if nothing is known to be missing
    outdated: bool = False  # it has to be observed before a pod is taken
    until: float | None = None  # when an observation is outdated


NOT_CONCERNED: Final = RoomCheck()


def check_room(room: Room | None, revision: str, gives_way: str, now: float) -> RoomCheck:
    """Return whether a pod of this revision has room where another pod goes first, or none."""
    if room is None or room.revision != revision:
        return RoomCheck(outdated=True)
    missing = room.reported or ", ".join(map(str, room.shortages(gives_way)))
    lasts = REPEATED.delay(room.attempt) if missing else FRESH_SECONDS
    until = room.observed_at + lasts
    return RoomCheck(missing, outdated=until <= now, until=until)


@lru_cache(maxsize=256)
def template_requests(template: bytes) -> dict[str, int]:
    """Return what a pod of the template requests; nothing if the template cannot be read."""
    try:
        decoded: Any = msgspec.json.decode(template)
        spec = decoded.get("spec") if isinstance(decoded, dict) else None
        return pod_requests(read_spec(spec or {}))
    except (msgspec.DecodeError, RecursionError):
        return {}


def requests_grow(before: bytes, after: bytes) -> bool:
    """Whether a pod of the second template requests more of some resource than one of the first."""
    return bool(growing_resources(template_requests(before), template_requests(after)))
