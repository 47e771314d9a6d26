"""Plan: one simulated run with its actions. It comes from a seed, a replay file or by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.components.kubelet.behaviour import Behaviour

Object = dict[str, Any]


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """One action or fault: at a time, or at the n-th request that controllers make."""

    name: str = msgspec.field(name="what")
    at: float = -1.0
    at_request: int = msgspec.field(default=-1, name="call")
    seconds: float = 0.0  # duration, for actions that last
    args: Object = {}
    fault: str = ""  # the number of its fault, such as F29

    def describe(self) -> str:
        """A short description of the action."""
        when = f"at call {self.at_request}" if self.at_request >= 0 else f"at {self.at:.1f} s"
        more = ", ".join(f"{key}={value}" for key, value in sorted(self.args.items()))
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.name} {when}{lasting}" + (f" ({more})" if more else "")


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long pods take to start and stop."""

    pull: float = 1.0
    start: float = 1.0
    ready: float = 0.0
    stop: float = 1.0

    def behaviour(self) -> Behaviour:
        """The behaviour of simulated kubelets with these times; they write no Events here."""
        pull = (self.pull, self.pull)
        return Behaviour(
            pull=pull, start=self.start, ready=self.ready, stop=self.stop, events=False
        )


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A world and every action in it; the same plan gives the same run."""

    seed: int
    nodes: int
    manifests: tuple[Object, ...]
    timing: Timing = Timing()
    controllers: int = 1
    actions: tuple[Action, ...] = msgspec.field(default=(), name="happenings")
    quiet_at: float = 0.0  # when the last action is over and faults end
    patience: float = 3600.0  # seconds after that within which the world must settle
    # --- What follows once the world has settled ---
    # stay idle for long, with a restart and a change of leader
    long_idle: bool = msgspec.field(default=False, name="tail")
    # check that updates, rollbacks and recovery still work
    check_recovery: bool = msgspec.field(default=False, name="encore")
    # compare with a world that begins with the last spec (L6)
    compare_with_fresh: bool = msgspec.field(default=False, name="from_its_end")
    # compare pod churn with a run without faults (L7)
    compare_without_faults: bool = msgspec.field(default=False, name="unharmed")
    name: str = ""

    def without(self, index: int) -> Plan:
        """The plan without one of its actions."""
        left = self.actions[:index] + self.actions[index + 1 :]
        return msgspec.structs.replace(self, actions=left)


def encode(plan: Plan) -> bytes:
    """The plan as a replay file."""
    return msgspec.json.format(msgspec.json.encode(plan, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes) -> Plan:
    """The plan of a replay file; raises msgspec.DecodeError."""
    return msgspec.json.decode(data, type=Plan)
