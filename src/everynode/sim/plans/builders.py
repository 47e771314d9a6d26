"""Builders: short functions that create the actions of hand-written plans."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from everynode.sim.plans.plan import Action


def at(time: float, name: str, /, seconds: float = 0.0, **args: Any) -> Action:
    """An action at a time, for a duration."""
    action = Action(name, at=time, args=args)
    return replace(action, seconds=seconds) if seconds else action


def at_request(number: int, name: str, /, seconds: float = 0.0, **args: Any) -> Action:
    """A fault at the n-th request that controllers make."""
    action = Action(name, at_request=number, args=args)
    return replace(action, seconds=seconds) if seconds else action


def set_image(time: float, image: str = "agent:v2") -> Action:
    """A user updates the DaemonSet to another image."""
    return at(time, "set-image", image=image)


def set_rolling_update(time: float, **fields: Any) -> Action:
    """A user changes fields of `updateStrategy.rollingUpdate`."""
    return at(time, "apply", spec={"updateStrategy": {"rollingUpdate": fields}})
