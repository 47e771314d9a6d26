"""How fast simulated time passes, with every promise checked at every commit.

    python -m bench.simulation [--nodes 5000] [--seeds 200] [--jobs 2]

Four figures: a rollout over 20 nodes one by one, in simulated seconds per second; a rollout over a
large fleet, ten nodes at a time, without its first installation; the same as foreseen by
`everynode simulate -f`, from the first node on; and seeds, each of them a small world with faults
of its own. Processor time counts: machines are shared.
"""

from __future__ import annotations

import argparse
import gc
import logging
import resource
import time

import msgspec

from bench import machine
from everynode.forecast.forecast import ForecastRequest, forecast
from everynode.sim.explore.campaign import play_seed, run_in_parallel
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import play

_GARBAGE = (100_000, 20, 50)  # worlds are full of cycles, and are thrown away whole
_UPDATE_AT = 60.0
_SMALL = 100  # nodes


class Figure(msgspec.Struct):
    """One thing that was measured."""

    work: str
    simulated: float
    cpu: float
    rate: float  # simulated seconds per second of processor time
    per_unit: float  # milliseconds per node, or per seed
    broken: int


def roll_out(nodes: int, limit: int) -> Figure:
    """A whole rollout; the first installation is played before the clock starts."""
    update = Action("set-image", at=_UPDATE_AT, args={"image": "agent:v2"})
    plan = Plan(
        1,
        nodes=nodes,
        manifests=(daemonset(rolling={"maxUnavailable": limit}),),
        timing=Timing(pull=0.0, start=20.0, stop=10.0),
        quiet_at=_UPDATE_AT - 1,
        patience=1e6,
    )
    begun = _begin()
    play(plan)
    installed = time.process_time() - begun
    updated = msgspec.structs.replace(plan, actions=(update,), quiet_at=_UPDATE_AT + 1)
    begun = _begin()
    result, _ = play(updated)
    whole = time.process_time() - begun
    # A small world counts whole; in a large one the installation would hide what was asked for.
    cpu = whole if nodes <= _SMALL else whole - installed
    simulated = result.seconds
    work = f"rollout, {nodes} nodes, maxUnavailable {limit}"
    per_node = 1000 * cpu / nodes
    return Figure(work, simulated, cpu, simulated / cpu, per_node, len(result.violations))


def foresee(nodes: int, limit: int) -> Figure:
    """A forecast, with all that it takes."""
    new = daemonset(image="agent:v2", rolling={"maxUnavailable": limit})
    timing = Timing(pull=0.0, start=20.0, stop=10.0)
    begun = _begin()
    found = forecast(ForecastRequest(old=daemonset(), new=new, nodes=nodes, timing=timing))
    cpu = time.process_time() - begun
    work = f"forecast, {nodes} nodes, maxUnavailable {limit}"
    broken = int(found.most_down > limit)
    return Figure(work, found.seconds, cpu, found.seconds / cpu, 1000 * cpu / nodes, broken)


def _begin() -> float:
    """The time of the processor, with the worlds before out of the way."""
    gc.collect()
    return time.process_time()


def play_seeds(count: int, jobs: int) -> Figure:
    """Many small worlds."""
    before = _children()
    begun = time.process_time()
    outcomes = [
        each for some in run_in_parallel(play_seed, range(count), jobs=jobs) for each in some
    ]
    cpu = _children() - before + time.process_time() - begun
    simulated = sum(each.result.seconds for each in outcomes)
    broken = sum(not each.result.kept for each in outcomes)
    return Figure(f"{count} seeds", simulated, cpu, simulated / cpu, 1000 * cpu / count, broken)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    logging.disable()
    play(Plan(0, nodes=1, manifests=(daemonset(),), quiet_at=5.0))  # everything is loaded
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    figures = [
        roll_out(20, 1),
        roll_out(options.nodes, 10),
        foresee(options.nodes, 10),
        play_seeds(options.seeds, options.jobs),
    ]
    for each in figures:
        print(_line(each))
    machine.append("simulation", figures)


def _line(figure: Figure) -> str:
    return (
        f"{figure.work:<40}{figure.simulated:>10,.0f} s simulated{figure.cpu:>8.1f} s of cpu"
        f"{figure.rate:>8,.0f} x{figure.per_unit:>8.1f} ms each{figure.broken:>4} broken"
    )


if __name__ == "__main__":
    main()
