"""Plan generator: a seed gives a plan. Swarm testing: the mix of faults is itself drawn.

Each part of a plan has its own random generator, named after the seed, so that a new kind of fault
does not change the rest of any plan. The literals in these names and the order of the draws must
therefore not change.
"""

from __future__ import annotations

import random
from typing import Any, Final

from everynode.sim.differential import generate_harmless
from everynode.sim.faults.catalogue import (
    COMMON_FAULTS,
    DRAINED,
    FULL_NODE,
    LONG,
    MAINTENANCE_FAULTS,
    PROCESS_FAULTS,
    PROTECTED,
    REFUSED_VERSION,
    SKEWED_CLOCK,
    STUCK_PULL_PODS,
)
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object, Plan, Timing
from everynode.sim.plans.variations import extra_actions, vary_manifests, withdrawn_tolerations

# One seed in this many ...
LONG_IDLE_EVERY: Final = 20  # stays idle for long after it has settled, with a restart in between
RECOVERY_EVERY: Final = 20  # runs the recovery check after it has settled
FRESH_EVERY: Final = 20  # is compared with a run that begins with its last spec
HARMLESS_EVERY: Final = 20  # is one update with faults that must not cost a pod
_PATIENCE: Final = 3600.0  # seconds within which the world must settle
_ACTION_SECONDS: Final = 90.0  # seconds during which actions happen
# Fractions of all seeds, or of those with hooks.
_WITH_PROCESS_FAULTS: Final = 0.35
_WITH_BUDGET: Final = 0.12
_WITH_STUCK_PULL_PODS: Final = 0.06
_WITH_REFUSED_VERSION: Final = 0.08
_WITH_MAINTENANCE: Final = 0.1
_WITH_FULL_NODES: Final = 0.12
_WITH_SKEWED_CLOCKS: Final = 0.08
_HOOKS_UNANSWERED: Final = 0.5


def generate_plan(seed: int) -> Plan:
    """The plan of a seed."""
    if seed % HARMLESS_EVERY == 3:
        return generate_harmless(seed)
    rng = random.Random(f"{seed}/draw")
    nodes = rng.choice((1, 2, 3, 3, 4, 4, 5, 6, 8))
    manifests, hooked = _manifests(rng, nodes)
    actions = [
        *_user_actions(rng, nodes),
        *_common_faults(rng, nodes),
        *extra_actions(seed, nodes),
        *withdrawn_tolerations(seed, nodes),
    ]
    actions += _process_faults(seed, nodes)
    actions += _deletion_blockers(seed, nodes, hooked=hooked)
    actions += _refused_version(seed, nodes)
    actions += _maintenance(seed, nodes)
    actions += _full_nodes(seed, nodes)
    actions += _skewed_clocks(seed, nodes)
    if hooked:
        times = [rng.uniform(10.0, _ACTION_SECONDS) for _ in range(5)]
        actions += [Action("release-hooks", at=round(t, 2)) for t in times]
    ends = (each.at + (each.seconds if each.seconds >= LONG else 0.0) for each in actions)
    last = max(ends, default=0.0)
    return Plan(
        seed=seed,
        nodes=nodes,
        manifests=vary_manifests(seed, manifests),
        timing=_timing(rng),
        controllers=rng.choice((1, 1, 1, 2)),
        actions=tuple(sorted(actions, key=lambda each: (each.at, each.at_request))),
        quiet_at=round(last + rng.uniform(1.0, 40.0), 2),
        patience=_PATIENCE + _clock_lead(actions),
        long_idle=seed % LONG_IDLE_EVERY == 0,
        check_recovery=seed % RECOVERY_EVERY == 1,
        compare_with_fresh=seed % FRESH_EVERY == 2,
        name=f"seed {seed}",
    )


def _clock_lead(actions: list[Action]) -> float:
    """Seconds by which clocks jump ahead: their timestamps lie in the future for as long."""
    jumping = ("clock-jump", "skew-node")
    jumps = [float(each.args["by"]) for each in actions if each.name in jumping]
    return sum(by for by in jumps if by > 0.0)


def _timing(rng: random.Random) -> Timing:
    return Timing(
        pull=rng.choice((0.0, 1.0, 5.0)),
        start=rng.choice((0.1, 1.0, 3.0)),
        ready=rng.choice((0.0, 0.0, 2.0)),
        stop=rng.choice((0.1, 1.0, 8.0)),
    )


def _manifests(rng: random.Random, nodes: int) -> tuple[tuple[Object, ...], bool]:
    rolling = _rolling(rng, nodes)
    spec: dict[str, Any] = {}
    hooked = rng.random() < 0.12 and "maxSurge" not in rolling
    if hooked:
        spec["lifecycle"] = {"preDelete": {"labelsHandler": {"hook": "yes"}}}
        spec["labels"] = {"hook": "yes"}
    if rng.random() < 0.1:
        spec["revisionHistoryLimit"] = 1
    native = rng.random() < 0.15 and not hooked
    if native:
        budget = rolling.get("maxUnavailable", 1)
        rolling = {"maxUnavailable": budget if budget != 0 else 1}
    first = daemonset(
        rolling=rolling,
        min_ready=rng.choice((0, 0, 3, 10)),
        api_version="apps/v1" if native else "apps.kruise.io/v1beta1",
        **spec,
    )
    others = [daemonset("other")] if rng.random() < 0.15 else []
    return (first, *others), hooked


def _rolling(rng: random.Random, nodes: int) -> Object:
    rolling: Object = {"maxUnavailable": rng.choice((1, 1, 1, 2, "30%", "50%"))}
    style = rng.random()
    if style < 0.2:
        rolling = {"maxSurge": rng.choice((1, 2, "50%")), "maxUnavailable": 0}
    elif style < 0.4:
        rolling["rollingUpdateType"] = "InPlaceIfPossible"
    if rng.random() < 0.3:
        rolling["partition"] = rng.choice((1, nodes // 2, nodes, "50%"))
    if rng.random() < 0.15:
        rolling["selector"] = {"matchLabels": {"topology.kubernetes.io/zone": "zone-a"}}
    return rolling


def _user_actions(rng: random.Random, nodes: int) -> list[Action]:
    """The user's actions: at least one update, the last of which works."""
    at = rng.uniform(3.0, 15.0)
    story = []
    for version in range(2, 2 + rng.choice((1, 1, 2, 3))):
        image = {"image": f"agent:v{version}"}
        story.append(Action("set-image", at=round(at, 2), args=image))
        at += rng.uniform(0.5, 40.0)
    if rng.random() < 0.3:
        spec = {"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": False}}}
        story.append(Action("apply", at=round(at, 2), args={"spec": spec}))
    return story


def _common_faults(rng: random.Random, nodes: int) -> list[Action]:
    found: list[Action] = []
    for fault in rng.sample(COMMON_FAULTS, rng.choice((0, 1, 2, 3, 4, 6))):
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = round(rng.uniform(0.0, _ACTION_SECONDS), 2)
            action = fault.draw(rng, at, nodes)
            found.append(action)
            if action.args.get("gone"):
                found.append(Action("gone", at=round(at + action.seconds, 2)))
    if any(each.args.get("image", "v").split(":")[-1][:1] != "v" for each in found):
        # Finally the user rolls out a working image to all nodes.
        rolling = {"partition": 0, "paused": False, "selector": None}
        spec = {"updateStrategy": {"rollingUpdate": rolling}}
        found.append(Action("apply", at=_ACTION_SECONDS + 4, args={"spec": spec}))
        found.append(Action("set-image", at=_ACTION_SECONDS + 5, args={"image": "agent:v9"}))
    return found


def _process_faults(seed: int, nodes: int) -> list[Action]:
    """Faults of whole processes and servers, for about a third of all seeds."""
    rng = random.Random(f"{seed}/upheavals")
    if rng.random() > _WITH_PROCESS_FAULTS:
        return []
    found: list[Action] = []
    for fault in rng.sample(PROCESS_FAULTS, rng.choice((1, 1, 2))):
        times = [round(rng.uniform(0.0, _ACTION_SECONDS), 2) for _ in range(rng.choice((1, 1, 3)))]
        found += [fault.draw(rng, at, nodes) for at in times]
    return found


def _deletion_blockers(seed: int, nodes: int, *, hooked: bool) -> list[Action]:
    """Faults that block deletions: disruption budgets, stuck pull pods, unanswered hooks."""
    rng = random.Random(f"{seed}/holdups")
    found: list[Action] = []
    if rng.random() < _WITH_BUDGET:
        found.append(PROTECTED.draw(rng, round(rng.uniform(1.0, 20.0), 2), nodes))
        count = rng.choice((1, 2, 3))
        times = [round(rng.uniform(3.0, _ACTION_SECONDS), 2) for _ in range(count)]
        found += [DRAINED.draw(rng, at, nodes) for at in times]
    if rng.random() < _WITH_STUCK_PULL_PODS:
        found.append(STUCK_PULL_PODS.draw(rng, round(rng.uniform(1.0, 30.0), 2), nodes))
    if hooked and rng.random() < _HOOKS_UNANSWERED:
        found += _unanswered_hooks(rng)
    return found


def _refused_version(seed: int, nodes: int) -> list[Action]:
    """A policy refuses the pods of the first update for a while."""
    rng = random.Random(f"{seed}/refused version")
    if rng.random() > _WITH_REFUSED_VERSION:
        return []
    return [REFUSED_VERSION.draw(rng, round(rng.uniform(0.0, 3.0), 2), nodes)]


def _maintenance(seed: int, nodes: int) -> list[Action]:
    """Nodes are maintained or shut down for a while."""
    rng = random.Random(f"{seed}/maintenance")
    if rng.random() > _WITH_MAINTENANCE:
        return []
    found = rng.choices(MAINTENANCE_FAULTS, k=rng.choice((1, 2, 4)))
    return [each.draw(rng, round(rng.uniform(0.0, _ACTION_SECONDS), 2), nodes) for each in found]


def _full_nodes(seed: int, nodes: int) -> list[Action]:
    """Other pods fill nodes, and the user lets the agents request more."""
    rng = random.Random(f"{seed}/full nodes")
    if rng.random() > _WITH_FULL_NODES:
        return []
    count = rng.choice((1, 2, 4))
    found = [FULL_NODE.draw(rng, round(rng.uniform(0.0, 40.0), 2), nodes) for _ in range(count)]
    for cpu in rng.choice((("100m",), ("250m",), ("100m", "500m"), ("500m", "100m"))):
        at = round(rng.uniform(3.0, _ACTION_SECONDS), 2)
        found.append(Action("set-requests", at=at, args={"cpu": cpu}))
    return found


def _skewed_clocks(seed: int, nodes: int) -> list[Action]:
    """The clocks of one or two nodes are wrong from some time on."""
    rng = random.Random(f"{seed}/node clocks")
    if rng.random() > _WITH_SKEWED_CLOCKS:
        return []
    times = [round(rng.uniform(0.0, _ACTION_SECONDS), 2) for _ in range(rng.choice((1, 1, 2)))]
    return [SKEWED_CLOCK.draw(rng, at, nodes) for at in times]


def _unanswered_hooks(rng: random.Random) -> list[Action]:
    """From some time on no hook is answered; then the user may roll back or remove the hook."""
    at = round(rng.uniform(3.0, _ACTION_SECONDS - 30.0), 2)
    found = [Action("hold-hooks", at=at, seconds=10.0 * _ACTION_SECONDS)]
    if rng.random() < 0.5:
        rollback = {"image": "agent:v1"}
        found.append(Action("set-image", at=_ACTION_SECONDS + 1.0, args=rollback))
    if rng.random() < 0.7:
        spec = {"lifecycle": None}
        found.append(Action("apply", at=_ACTION_SECONDS + 2.0, args={"spec": spec}))
    return found
