"""What is to happen in one simulated world: a value that a seed gives and a file can keep."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.cluster.machinery.behaviour import Behaviour

Object = dict[str, Any]


class Happening(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happens: at a time, or at the n-th request that a controller makes."""

    what: str
    at: float = -1.0
    call: int = -1
    seconds: float = 0.0  # how long it lasts, where it lasts
    args: Object = {}
    fault: str = ""  # the entry of the list of faults that it stands for

    def describe(self) -> str:
        """The happening in a few words."""
        when = f"at call {self.call}" if self.call >= 0 else f"at {self.at:.1f} s"
        more = ", ".join(f"{key}={value}" for key, value in sorted(self.args.items()))
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.what} {when}{lasting}" + (f" ({more})" if more else "")


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long pods take."""

    pull: float = 1.0
    start: float = 1.0
    ready: float = 0.0
    stop: float = 1.0

    def behaviour(self) -> Behaviour:
        """The same, as simulated nodes know it; nobody reads their events."""
        pull = (self.pull, self.pull)
        return Behaviour(
            pull=pull, start=self.start, ready=self.ready, stop=self.stop, events=False
        )


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A world and everything that happens in it; the same plan gives the same run."""

    seed: int
    nodes: int
    manifests: tuple[Object, ...]
    timing: Timing = Timing()
    controllers: int = 1
    happenings: tuple[Happening, ...] = ()
    quiet_at: float = 0.0  # from when on nothing more happens
    patience: float = 3600.0  # until when, after that, the world must have settled
    tail: bool = False  # stay for the long quiet end, with a restart and a change of leader
    encore: bool = False  # then update, fail and go back once more, with nothing in the way
    from_its_end: bool = False  # then see whether its last spec alone gives the same (L6)
    unharmed: bool = False  # then see whether it moves as many pods without its faults (L7)
    name: str = ""

    def without(self, index: int) -> Plan:
        """The same without one of the happenings."""
        left = self.happenings[:index] + self.happenings[index + 1 :]
        return msgspec.structs.replace(self, happenings=left)


def encode(plan: Plan) -> bytes:
    """The plan as a replay file."""
    return msgspec.json.format(msgspec.json.encode(plan, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes) -> Plan:
    """The plan of a replay file; raises msgspec.DecodeError."""
    return msgspec.json.decode(data, type=Plan)
