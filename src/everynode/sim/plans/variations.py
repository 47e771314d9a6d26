"""Variations of generated plans: node selectors, respelled templates, foreign owners and writers.

They use their own random generators, so that the rest of a seed's plan does not change.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Final

from everynode.sim.plans.builders import at
from everynode.sim.plans.plan import Action, Object

_EARLIEST, _LATEST = 3.0, 85.0
_TOLERATE_ALL: Final = [{"operator": "Exists"}]

Variation = Callable[[random.Random, float, int], list[Action]]


def vary_manifests(seed: int, manifests: tuple[Object, ...]) -> tuple[Object, ...]:
    """Let some DaemonSets tolerate all taints, overlap, be progressive, or mark NotReady."""
    rng = random.Random(f"{seed}/manifests")
    first, *others = (copy.deepcopy(each) for each in manifests)
    if rng.random() < 0.3:
        first["spec"]["template"]["spec"]["tolerations"] = _TOLERATE_ALL
    for other in others:
        if rng.random() < 0.4:
            labels = first["spec"]["selector"]["matchLabels"]
            other["spec"]["selector"] = {"matchLabels": labels}
            other["spec"]["template"]["metadata"]["labels"] = labels
    rolling = first["spec"]["updateStrategy"]["rollingUpdate"]
    held = "partition" in rolling or "selector" in rolling
    if held and first["apiVersion"] != "apps/v1" and rng.random() < 0.3:
        first["spec"]["scaleStrategy"] = {"partitionedScaling": True}
    hook = first["spec"].get("lifecycle", {}).get("preDelete")
    if hook and rng.random() < 0.4:
        hook["markPodNotReady"] = True
    return (first, *others)


def extra_actions(seed: int, nodes: int) -> list[Action]:
    """Up to two variations that are not faults."""
    rng = random.Random(f"{seed}/story")
    count = rng.choice((0, 0, 0, 1, 1, 2))
    found: list[Action] = []
    for variation in rng.sample(_VARIATIONS, count):
        found += variation(rng, round(rng.uniform(_EARLIEST, _LATEST), 2), nodes)
    return found


def withdrawn_tolerations(seed: int, nodes: int) -> list[Action]:
    """For one seed in sixteen, taints, and a template that tolerates none."""
    rng = random.Random(f"{seed}/tolerations")
    if rng.random() > 1 / 16:
        return []
    time = rng.uniform(_EARLIEST, _LATEST)
    tainted = [node for node in range(nodes) if rng.random() < 0.5]
    found = [_at(time, "taint-node", node=node) for node in tainted]
    return [*found, _at(time + rng.uniform(0.0, 8.0), "set-tolerations", tolerations=[])]


def _at(time: float, name: str, **args: Any) -> Action:
    return at(round(time, 2), name, **args)


def _respell(rng: random.Random, time: float, nodes: int) -> list[Action]:
    return [_at(time, "respell")]


def _variable(rng: random.Random, time: float, nodes: int) -> list[Action]:
    return [_at(time, "set-variable", value=rng.randrange(5))]


def _status(rng: random.Random, time: float, nodes: int) -> list[Action]:
    return [_at(time, "write-status", status={"desiredNumberScheduled": 100 * nodes})]


def _condition(rng: random.Random, time: float, nodes: int) -> list[Action]:
    return [_at(time, "write-status", status={}, condition="Tended")]


def _relabel(rng: random.Random, time: float, nodes: int) -> list[Action]:
    return [_at(time, "relabel-pod", node=rng.randrange(nodes), keep=True)]


def _terminating_orphan(rng: random.Random, time: float, nodes: int) -> list[Action]:
    node = rng.randrange(nodes)
    return [
        _at(time, "stick-pod", node=node),
        _at(time + 0.5, "delete-pod", node=node),
        _at(time + 1.0, "orphan-pod", node=node),
    ]


def _node_pool(rng: random.Random, time: float, nodes: int) -> list[Action]:
    """The template selects a node pool, and nodes join and leave that pool."""
    pool = [node for node in range(nodes) if rng.random() < 0.6]
    found = [_at(time, "label-node", node=node, labels={"pool": "a"}) for node in pool]
    found.append(_at(time + 1.0, "set-selector", labels={"pool": "a"}))
    for _ in range(rng.randrange(3)):
        later = time + rng.uniform(2.0, 40.0)
        labels = {"pool": rng.choice(("a", None))}
        found.append(_at(later, "label-node", node=rng.randrange(nodes), labels=labels))
    if rng.random() < 0.4:
        found.append(_at(time + rng.uniform(5.0, 40.0), "set-selector", labels={}))
    return found


# Seeds draw from this table by position: its order must not change. Node pools are drawn twice as
# often as the others.
_VARIATIONS: Final[tuple[Variation, ...]] = (
    _respell,
    _variable,
    _status,
    _condition,
    _relabel,
    _terminating_orphan,
    _node_pool,
    _node_pool,
)
