"""Look for a broken promise in the sources that are first on the path; one JSON line tells of it.

    python -m mutants.hunt [--seeds 300] [--seconds 240] [--first PLAN] [--skip PLAN ...]
    python -m mutants.hunt --only PLAN

Run by `python -m mutants` in a copy of the sources in which a bug was planted.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from everynode.sim.draw import draw
from everynode.sim.loop import SimLoop
from everynode.sim.plan import Plan
from everynode.sim.reference import compare
from everynode.sim.scenarios import SCENARIOS
from everynode.sim.traps import TRAPS
from everynode.sim.world import World

PLAN_SECONDS: Final = 45  # of CPU; the longest of the plans takes a tenth of it
_IN_TIME: Final = 120.0  # seconds after the last happening in which a faultless world settles


class TooLong(KeyboardInterrupt):
    """A plan went on and on. No loop and no task holds this one up."""


class Broken(KeyboardInterrupt):
    """A promise was broken: nobody needs to know how it goes on."""


class Impatient(World):
    """A world that ends with the first broken promise."""

    def breach(self, promise: str, message: str) -> None:
        """Note it, and stop."""
        super().breach(promise, message)
        raise Broken


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a hunt."""

    plan: str = ""  # empty where nothing was broken
    promise: str = ""
    message: str = ""
    played: int = 0
    seconds: float = 0.0  # of CPU


def plan_of(name: str) -> Plan:
    """The plan behind a name: a scenario, a trap or a seed."""
    kind, _, rest = name.partition(" ")
    if kind == "seed":
        return draw(int(rest))
    if kind == "trap":
        return TRAPS[rest]
    # Nothing goes wrong in a scenario, so that nothing excuses a delay.
    return msgspec.structs.replace(SCENARIOS[rest].plan, patience=_IN_TIME)


def names(seeds: int, first: str = "") -> Iterator[str]:
    """All plans in the order in which they are played."""
    every = [f"scenario {name}" for name in SCENARIOS] + [f"trap {name}" for name in TRAPS]
    every += [f"seed {seed}" for seed in range(1, seeds + 1)]
    if first in every:
        yield first
    yield from (name for name in every if name != first)


def judge(name: str) -> tuple[str, str]:
    """The first promise that a plan breaks, and how; empty where all are kept."""
    plan = plan_of(name)
    loop = SimLoop(plan.seed)
    world = Impatient(loop, plan)
    signal.setitimer(signal.ITIMER_PROF, PLAN_SECONDS)
    try:
        loop.run_until_complete(world.live())
        compare(world)
    except Broken:
        return world.breaches[0].promise, world.breaches[0].message
    except TooLong:
        return "L4", f"went on for more than {PLAN_SECONDS} s of CPU"
    except Exception as error:
        return "S0", f"the world ended: {error!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    loop.close()
    assert not world.breaches
    return "", ""


def _too_long(*_: object) -> None:
    raise TooLong


def hunt(plans: Iterator[str], *, seconds: float) -> Found:
    """Play plan after plan until one breaks a promise, for so many seconds of CPU."""
    played = 0
    for name in plans:
        promise, message = judge(name)
        played += 1
        if promise:
            return Found(name, promise, message, played, time.process_time())
        if time.process_time() > seconds:
            break
    return Found(played=played, seconds=time.process_time())


def main() -> None:
    """Hunt, and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--first", default="")
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, _too_long)
    hard = asked.seconds + 2 * PLAN_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard + 5))
    plans = iter([asked.only]) if asked.only else names(asked.seeds, asked.first)
    found = hunt((name for name in plans if name not in asked.skip), seconds=asked.seconds)
    print(msgspec.json.encode(found).decode(), flush=True)
    sys.stdout.flush()
    os._exit(0)  # whatever a hanging world has left behind


if __name__ == "__main__":
    main()
