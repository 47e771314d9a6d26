"""Hunt: searches for a broken promise in the sources first on the path; prints one JSON line.

    python -m mutants.hunt [--seeds 300] [--seconds 240] [--first PLAN] [--skip PLAN ...]
    python -m mutants.hunt --only PLAN

Run by `python -m mutants` in a copy of the sources in which a mutant was planted.
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

from everynode.sim.differential import compare
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.plan import Plan
from everynode.sim.plans.scenarios import SCENARIOS
from everynode.sim.world import World
from tests.sim.regression_plans import REGRESSION_PLANS

PLAN_SECONDS: Final = 45  # CPU seconds; the longest plan takes a tenth of it
_IN_TIME: Final = 120.0  # seconds after the last action within which a world without faults settles


class OutOfTime(KeyboardInterrupt):
    """A plan took too long. A KeyboardInterrupt, so that no loop or task catches it."""


class ViolationFound(KeyboardInterrupt):
    """A promise was broken; the rest of the plan need not be played."""


class StopAtFirstViolation(World):
    """A world that ends with the first broken promise."""

    def report_violation(self, promise: str, message: str) -> None:
        """Record the violation and stop."""
        super().report_violation(promise, message)
        raise ViolationFound


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a hunt."""

    plan: str = ""  # empty if no promise was broken
    promise: str = ""
    message: str = ""
    played: int = 0
    seconds: float = 0.0  # CPU time


def plan_of(name: str) -> Plan:
    """The plan with a name: a scenario, a regression plan ("regression") or a seed."""
    kind, _, rest = name.partition(" ")
    if kind == "seed":
        return generate_plan(int(rest))
    if kind == "regression":
        return REGRESSION_PLANS[rest]
    # A scenario has no faults, so nothing justifies a delay.
    return msgspec.structs.replace(SCENARIOS[rest].plan, patience=_IN_TIME)


def names(seeds: int, first: str = "") -> Iterator[str]:
    """All plans in the order in which they are played."""
    every = [f"scenario {name}" for name in SCENARIOS] + [
        f"regression {name}" for name in REGRESSION_PLANS
    ]
    every += [f"seed {seed}" for seed in range(1, seeds + 1)]
    if first in every:
        yield first
    yield from (name for name in every if name != first)


def first_violation(name: str) -> tuple[str, str]:
    """The first promise that a plan breaks, and how; empty if all are kept."""
    plan = plan_of(name)
    loop = SimLoop(plan.seed)
    world = StopAtFirstViolation(loop, plan)
    signal.setitimer(signal.ITIMER_PROF, PLAN_SECONDS)
    try:
        loop.run_until_complete(world.run())
        compare(world)
    except ViolationFound:
        return world.violations[0].promise, world.violations[0].message
    except OutOfTime:
        return "L4", f"went on for more than {PLAN_SECONDS} s of CPU"
    except Exception as error:
        return "S0", f"the world ended: {error!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    loop.close()
    assert not world.violations
    return "", ""


def _too_long(*_: object) -> None:
    raise OutOfTime


def hunt(plans: Iterator[str], *, seconds: float) -> Found:
    """Play plans until one breaks a promise, for at most `seconds` of CPU time."""
    played = 0
    for name in plans:
        promise, message = first_violation(name)
        played += 1
        if promise:
            return Found(name, promise, message, played, time.process_time())
        if time.process_time() > seconds:
            break
    return Found(played=played, seconds=time.process_time())


def main() -> None:
    """Run the hunt and print its result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--first", default="")
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, _too_long)
    hard = options.seconds + 2 * PLAN_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard + 5))
    plans = iter([options.only]) if options.only else names(options.seeds, options.first)
    found = hunt((name for name in plans if name not in options.skip), seconds=options.seconds)
    print(msgspec.json.encode(found).decode(), flush=True)
    sys.stdout.flush()
    os._exit(0)  # at once: a world that hangs may have left tasks behind


if __name__ == "__main__":
    main()
