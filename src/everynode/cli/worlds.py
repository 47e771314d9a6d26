"""Simulated worlds on the command line: many at once, or one from beginning to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from everynode.cli.errors import UserError, WrongUsage
from everynode.cli.progress import Progress
from everynode.cli.verdict import MOST_FILES, Finding, as_object, keep, lines, title_of
from everynode.cli.words import count_of, show_duration
from everynode.clock import SystemClock
from everynode.sim.campaign import Outcome, Tally, play_seed, spread
from everynode.sim.enumerate import Unsound, crash_points, play_point, play_stale_point
from everynode.sim.plan import Happening, Plan
from everynode.sim.reference import play_beside
from everynode.sim.replay import ReplayError, load, tell
from everynode.sim.scenarios import SCENARIOS
from everynode.sim.shrink import MOST_PLAYS, shrink
from everynode.sim.timeline import timeline
from everynode.sim.world import Result

T = TypeVar("T")
MOST_SHRUNK: Final = 3
_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Effort:
    """How many processes work, and where replay files go."""

    jobs: int
    folder: Path


def cores() -> int:
    """How many processes can work at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def answer(options: dict[str, Any], *, as_json: bool) -> None:
    """What was asked on the command line about simulated worlds."""
    if options["listed"]:
        list_scenarios()
    elif options["replay"]:
        replay(Path(options["replay"]), as_json=as_json)
    elif options["crash_points"]:
        plans = scenarios(options["scenario"])
        crash(plans, _effort(options), stale=options["stale"], as_json=as_json)
    elif options["scenario"]:
        show(scenarios(options["scenario"])[0], as_json=as_json)
    else:
        first: int = options["first"]
        seeds = range(first, first + options["seeds"])
        play_seeds(seeds, _effort(options), as_json=as_json)


def _effort(options: dict[str, Any]) -> Effort:
    folder: Path = options["folder"]
    if not folder.is_dir():
        raise WrongUsage(f"--save {folder}: there is no such folder")
    return Effort(options["jobs"] or cores(), folder)


# --- One world -----------------------------------------------------------------------------------


def list_scenarios() -> None:
    """The reference scenarios, a line each."""
    width = max(map(len, SCENARIOS))
    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:<{width}}  {scenario.title}")


def scenarios(name: str) -> list[Plan]:
    """The plan of one scenario, or of all; raises UserError."""
    if name and name not in SCENARIOS:
        raise WrongUsage(f"there is no scenario {name!r}: {', '.join(SCENARIOS)}")
    return [each.plan for each in SCENARIOS.values() if name in ("", each.name)]


def replay(path: Path, *, as_json: bool) -> None:
    """Play a replay file."""
    try:
        plan = load(path)
    except ReplayError as error:
        raise UserError(str(error)) from None
    show(plan, as_json=as_json)


def show(plan: Plan, *, as_json: bool) -> None:
    """Play one world, and print what happened in it; exits with 1 if a promise was broken."""
    result, world = play_beside(plan)
    if as_json:
        said = {"plan": plan, "result": result, "timeline": list(timeline(world))}
        _print_json(said)
    else:
        click.secho(plan.name or f"seed {plan.seed}", bold=True)
        for line in tell(plan):
            click.echo(f"  {line}")
        click.echo()
        for line in timeline(world):
            click.secho(line, **_style(line))
        click.echo()
        _conclude(result)
    if not result.kept:
        sys.exit(1)


def _style(line: str) -> dict[str, Any]:
    if "** BROKEN" in line:
        return {"fg": "red", "bold": True}
    return {"bold": True} if "** " in line else {}


def _conclude(result: Result) -> None:
    took = f"{show_duration(result.seconds)} simulated, {count_of(result.commits, 'commit')}"
    if result.kept:
        click.echo(f"Every promise kept: {took}")
        return
    click.secho(f"{count_of(len(result.breaches), 'promise')} broken: {took}", fg="red")
    for breach in result.breaches:
        click.echo(f"  {title_of(breach.promise)}, at {breach.time:.1f} s: {breach.message}")


# --- Many worlds ---------------------------------------------------------------------------------


def play_seeds(seeds: range, effort: Effort, *, as_json: bool) -> None:
    """Play the worlds of some seeds; exits with 1 if a promise was broken."""
    run_all(play_seed, seeds, effort, total=len(seeds), what="seed", as_json=as_json)


def crash(plans: Sequence[Plan], effort: Effort, *, stale: bool, as_json: bool) -> None:
    """Kill the controller at every request of some plans; exits with 1 if a promise was broken."""
    try:
        tasks = [(plan, point) for plan in plans for point in crash_points(plan)]
    except Unsound as error:
        raise UserError(f"a promise is broken in {error}; see --scenario") from None
    work: Callable[[tuple[Plan, Happening]], Sequence[Outcome]]
    work = play_stale_point if stale else play_point
    run_all(work, tasks, effort, total=len(tasks), what="crash point", as_json=as_json)


def run_all(
    work: Callable[[T], Sequence[Outcome]],
    items: Iterable[T],
    effort: Effort,
    *,
    total: int,
    what: str,
    as_json: bool,
) -> None:
    """Do all the work, and say what came of it; Ctrl-C ends it early, with what is known."""
    clock = SystemClock()
    began = clock.monotonic()
    progress = Progress(sys.stderr, clock, total=total, what=f"{what}s")
    tally, done, interrupted = Tally(), 0, False
    try:
        for outcomes in spread(work, items, jobs=effort.jobs):
            for outcome in outcomes:
                tally.add(outcome)
            done += 1
            progress.show(done, f"{len(tally.broken)} broken" if tally.broken else "")
    except KeyboardInterrupt:
        interrupted = True
    except BrokenProcessPool:
        raise UserError("a process died, perhaps for lack of memory; try fewer --jobs") from None
    finally:
        progress.end()
    seconds = clock.monotonic() - began
    findings = _findings(tally, effort.folder, shrunk=0 if interrupted else MOST_SHRUNK)
    if as_json:
        _print_json(as_object(tally, findings))
    else:
        worlds = "" if done == tally.runs else f" in {count_of(tally.runs, 'world')}"
        for line in lines(tally, findings, what=count_of(done, what) + worlds, seconds=seconds):
            click.secho(line, fg="red" if line.startswith("BROKEN") else None)
    if interrupted:
        click.echo(f"stopped after {done:,} of {total:,} {what}s", err=True)
    if tally.broken or interrupted:
        sys.exit(1 if tally.broken else _INTERRUPTED)


def _findings(tally: Tally, folder: Path, *, shrunk: int) -> list[Finding]:
    """The broken promises with their replay files, the first few of them shrunk."""
    findings = []
    for number, outcome in enumerate(tally.broken[:MOST_FILES]):
        assert outcome.plan is not None
        plan = outcome.plan
        if number < shrunk:
            plan = _shrunk(outcome.plan, outcome.result)
        findings.append(keep(Finding(outcome, plan), folder))
    return findings


def _shrunk(plan: Plan, result: Result) -> Plan:
    progress = Progress(sys.stderr, SystemClock(), total=MOST_PLAYS, what="attempts to shrink it")
    try:
        return shrink(plan, result.breaches[0].promise, told=progress.show)
    except KeyboardInterrupt:
        return plan
    finally:
        progress.end()


def _print_json(said: object) -> None:
    text = msgspec.json.format(msgspec.json.encode(said), indent=2)
    click.echo(text)
