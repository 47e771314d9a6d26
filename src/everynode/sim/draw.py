"""From a seed to a plan: swarm testing, where the mix of faults is itself drawn."""

from __future__ import annotations

import random
from typing import Any, Final

from everynode.sim.faults import FAULTS, Fault
from everynode.sim.holdups import holdups
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Object, Plan, Timing
from everynode.sim.reference import harmless
from everynode.sim.upheavals import LONG, upheavals
from everynode.sim.variety import vary_manifests, vary_story

TAIL_EVERY: Final = 20  # one seed in so many stays for the long quiet end
ENCORE_EVERY: Final = 20  # one in so many must then show that it still works
ALIKE_EVERY: Final = 20  # one in so many is compared with a world that begins with its last spec
UNHARMED_EVERY: Final = 20  # one in so many is one update whose faults must not cost a pod
_PATIENCE: Final = 3600.0  # seconds in which the world must settle
_DISTURBED: Final = 90.0  # seconds in which things happen


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    if seed % UNHARMED_EVERY == 3:
        return harmless(seed)
    chance = random.Random(f"{seed}/draw")
    nodes = chance.choice((1, 2, 3, 3, 4, 4, 5, 6, 8))
    manifests, hooked = _manifests(chance, nodes)
    happenings = [*_story(chance, nodes), *_faults(chance, nodes), *vary_story(seed, nodes)]
    happenings += upheavals(seed, nodes, until=_DISTURBED)
    happenings += holdups(seed, nodes, hooked=hooked, until=_DISTURBED)
    if hooked:
        times = [chance.uniform(10.0, _DISTURBED) for _ in range(5)]
        happenings += [Happening("release-hooks", at=round(t, 2)) for t in times]
    ends = (each.at + (each.seconds if each.seconds >= LONG else 0.0) for each in happenings)
    last = max(ends, default=0.0)
    return Plan(
        seed=seed,
        nodes=nodes,
        manifests=vary_manifests(seed, manifests),
        timing=_timing(chance),
        controllers=chance.choice((1, 1, 1, 2)),
        happenings=tuple(sorted(happenings, key=lambda each: (each.at, each.call))),
        quiet_at=round(last + chance.uniform(1.0, 40.0), 2),
        patience=_PATIENCE + _ahead(happenings),
        tail=seed % TAIL_EVERY == 0,
        encore=seed % ENCORE_EVERY == 1,
        from_its_end=seed % ALIKE_EVERY == 2,
        name=f"seed {seed}",
    )


def _ahead(happenings: list[Happening]) -> float:
    """How far a clock may get ahead: what it has written then lies in the future for as long."""
    jumps = [float(each.args["by"]) for each in happenings if each.what == "clock-jump"]
    return sum(by for by in jumps if by > 0.0)


def _timing(chance: random.Random) -> Timing:
    return Timing(
        pull=chance.choice((0.0, 1.0, 5.0)),
        start=chance.choice((0.1, 1.0, 3.0)),
        ready=chance.choice((0.0, 0.0, 2.0)),
        stop=chance.choice((0.1, 1.0, 8.0)),
    )


def _manifests(chance: random.Random, nodes: int) -> tuple[tuple[Object, ...], bool]:
    rolling = _rolling(chance, nodes)
    spec: dict[str, Any] = {}
    hooked = chance.random() < 0.12 and "maxSurge" not in rolling
    if hooked:
        spec["lifecycle"] = {"preDelete": {"labelsHandler": {"hook": "yes"}}}
        spec["labels"] = {"hook": "yes"}
    if chance.random() < 0.1:
        spec["revisionHistoryLimit"] = 1
    native = chance.random() < 0.15 and not hooked
    if native:
        budget = rolling.get("maxUnavailable", 1)
        rolling = {"maxUnavailable": budget if budget != 0 else 1}
    first = daemonset(
        rolling=rolling,
        min_ready=chance.choice((0, 0, 3, 10)),
        api_version="apps/v1" if native else "apps.kruise.io/v1beta1",
        **spec,
    )
    others = [daemonset("other")] if chance.random() < 0.15 else []
    return (first, *others), hooked


def _rolling(chance: random.Random, nodes: int) -> Object:
    rolling: Object = {"maxUnavailable": chance.choice((1, 1, 1, 2, "30%", "50%"))}
    style = chance.random()
    if style < 0.2:
        rolling = {"maxSurge": chance.choice((1, 2, "50%")), "maxUnavailable": 0}
    elif style < 0.4:
        rolling["rollingUpdateType"] = "InPlaceIfPossible"
    if chance.random() < 0.3:
        rolling["partition"] = chance.choice((1, nodes // 2, nodes, "50%"))
    if chance.random() < 0.15:
        rolling["selector"] = {"matchLabels": {"topology.kubernetes.io/zone": "zone-a"}}
    return rolling


def _story(chance: random.Random, nodes: int) -> list[Happening]:
    """What its user does: at least one update, which works in the end."""
    at = chance.uniform(3.0, 15.0)
    story = []
    for version in range(2, 2 + chance.choice((1, 1, 2, 3))):
        image = {"image": f"agent:v{version}"}
        story.append(Happening("set-image", at=round(at, 2), args=image))
        at += chance.uniform(0.5, 40.0)
    if chance.random() < 0.3:
        spec = {"updateStrategy": {"rollingUpdate": {"partition": 0, "paused": False}}}
        story.append(Happening("apply", at=round(at, 2), args={"spec": spec}))
    return story


def _faults(chance: random.Random, nodes: int) -> list[Happening]:
    few: list[Fault] = chance.sample(FAULTS, chance.choice((0, 1, 2, 3, 4, 6)))
    found: list[Happening] = []
    for fault in few:
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = round(chance.uniform(0.0, _DISTURBED), 2)
            made = fault.draw(chance, at, nodes)
            found.append(made)
            if made.args.get("gone"):
                found.append(Happening("gone", at=round(at + made.seconds, 2)))
    if any(each.args.get("image", "v").split(":")[-1][:1] != "v" for each in found):
        # Somebody mends it in the end, everywhere.
        rolling = {"partition": 0, "paused": False, "selector": None}
        spec = {"updateStrategy": {"rollingUpdate": rolling}}
        found.append(Happening("apply", at=_DISTURBED + 4, args={"spec": spec}))
        found.append(Happening("set-image", at=_DISTURBED + 5, args={"image": "agent:v9"}))
    return found
