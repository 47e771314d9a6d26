"""What makes some seeds more colourful: node selectors, other spellings, other owners and writers.

It has a chance of its own, so that the rest of a seed stays what it was.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Final

from everynode.sim.plan import Happening, Object

_EARLIEST, _LATEST = 3.0, 85.0
_EVERYWHERE: Final = [{"operator": "Exists"}]

Tale = Callable[[random.Random, float, int], list[Happening]]


def vary_manifests(seed: int, manifests: tuple[Object, ...]) -> tuple[Object, ...]:
    """Some tolerate all taints, select each other's pods, come step by step, or go quietly."""
    chance = random.Random(f"{seed}/manifests")
    first, *others = (copy.deepcopy(each) for each in manifests)
    if chance.random() < 0.3:
        first["spec"]["template"]["spec"]["tolerations"] = _EVERYWHERE
    for other in others:
        if chance.random() < 0.4:
            labels = first["spec"]["selector"]["matchLabels"]
            other["spec"]["selector"] = {"matchLabels": labels}
            other["spec"]["template"]["metadata"]["labels"] = labels
    rolling = first["spec"]["updateStrategy"]["rollingUpdate"]
    held = "partition" in rolling or "selector" in rolling
    if held and first["apiVersion"] != "apps/v1" and chance.random() < 0.3:
        first["spec"]["scaleStrategy"] = {"partitionedScaling": True}
    hook = first["spec"].get("lifecycle", {}).get("preDelete")
    if hook and chance.random() < 0.4:
        hook["markPodNotReady"] = True
    return (first, *others)


def vary_story(seed: int, nodes: int) -> list[Happening]:
    """A tale or two that no fault tells."""
    chance = random.Random(f"{seed}/story")
    count = chance.choice((0, 0, 0, 1, 1, 2))
    found: list[Happening] = []
    for tale in chance.sample(_TALES, count):
        found += tale(chance, round(chance.uniform(_EARLIEST, _LATEST), 2), nodes)
    return found


def _one(what: str, at: float, **args: Any) -> list[Happening]:
    return [Happening(what, at=round(at, 2), args=args)]


def _respell(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    return _one("respell", at)


def _variable(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    return _one("set-variable", at, value=chance.randrange(5))


def _status(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    return _one("write-status", at, status={"desiredNumberScheduled": 100 * nodes})


def _condition(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    return _one("write-status", at, status={}, condition="Tended")


def _taken_out(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    return _one("relabel-pod", at, node=chance.randrange(nodes), keep=True)


def _dying_orphan(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    node = chance.randrange(nodes)
    return [
        *_one("stick-pod", at, node=node),
        *_one("delete-pod", at + 0.5, node=node),
        *_one("orphan-pod", at + 1.0, node=node),
    ]


def _pool(chance: random.Random, at: float, nodes: int) -> list[Happening]:
    """The template comes to want only some nodes, and nodes come and go from among them."""
    found: list[Happening] = []
    for node in range(nodes):
        if chance.random() < 0.6:
            found += _one("label-node", at, node=node, labels={"pool": "a"})
    found += _one("set-selector", at + 1.0, labels={"pool": "a"})
    for _ in range(chance.randrange(3)):
        later = at + chance.uniform(2.0, 40.0)
        pool = chance.choice(("a", None))
        found += _one("label-node", later, node=chance.randrange(nodes), labels={"pool": pool})
    if chance.random() < 0.4:
        found += _one("set-selector", at + chance.uniform(5.0, 40.0), labels={})
    return found


_TALES: Final[tuple[Tale, ...]] = (
    _respell,
    _variable,
    _status,
    _condition,
    _taken_out,
    _dying_orphan,
    _pool,
    _pool,
)
