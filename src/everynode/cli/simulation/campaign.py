"""Campaign: play the worlds of many seeds or crash points, or one plan with its timeline."""

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

from everynode.cli.simulation.report import (
    MAX_FILES,
    BrokenWorld,
    as_json_object,
    promise_title,
    report_lines,
    save_replay,
)
from everynode.cli.terminal.progress import Progress
from everynode.cli.terminal.text import format_count, format_duration
from everynode.clock import SystemClock
from everynode.errors import UsageError, UserError
from everynode.sim.differential import play_and_compare
from everynode.sim.explore.campaign import CampaignTotals, Outcome, play_seed, run_in_parallel
from everynode.sim.explore.crash_points import (
    UnsoundPlan,
    crash_points,
    play_point,
    play_stale_point,
)
from everynode.sim.explore.replay import ReplayError, describe_plan, load
from everynode.sim.explore.shrink import MAX_PLAYS, shrink
from everynode.sim.history.timeline import timeline
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.plans.scenarios import SCENARIOS
from everynode.sim.world import Result

T = TypeVar("T")
MAX_SHRUNK: Final = 3
_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """Worker processes, and the folder of the replay files."""

    jobs: int
    folder: Path


def cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(options: dict[str, Any], *, as_json: bool) -> None:
    """Run the mode that the command line chose."""
    if options["listed"]:
        list_scenarios()
    elif options["replay"]:
        play_replay(Path(options["replay"]), as_json=as_json)
    elif options["crash_points"]:
        plans = scenarios(options["scenario"])
        play_crash_points(
            plans, _campaign_options(options), stale=options["stale"], as_json=as_json
        )
    elif options["scenario"]:
        play_and_print(scenarios(options["scenario"])[0], as_json=as_json)
    else:
        first: int = options["first"]
        seeds = range(first, first + options["seeds"])
        play_seeds(seeds, _campaign_options(options), as_json=as_json)


def _campaign_options(options: dict[str, Any]) -> CampaignOptions:
    folder: Path = options["folder"]
    if not folder.is_dir():
        raise UsageError(f"--save {folder}: there is no such folder")
    return CampaignOptions(options["jobs"] or cores(), folder)


# --- One world -----------------------------------------------------------------------------------


def list_scenarios() -> None:
    """The reference scenarios, a line each."""
    width = max(map(len, SCENARIOS))
    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:<{width}}  {scenario.title}")


def scenarios(name: str) -> list[Plan]:
    """The plan of one scenario, or of all; raises UserError."""
    if name and name not in SCENARIOS:
        raise UsageError(f"there is no scenario {name!r}: {', '.join(SCENARIOS)}")
    return [each.plan for each in SCENARIOS.values() if name in ("", each.name)]


def play_replay(path: Path, *, as_json: bool) -> None:
    """Play a replay file."""
    try:
        plan = load(path)
    except ReplayError as error:
        raise UserError(str(error)) from None
    play_and_print(plan, as_json=as_json)


def play_and_print(plan: Plan, *, as_json: bool) -> None:
    """Play one plan and print its timeline; exits with 1 if a promise was broken."""
    result, world = play_and_compare(plan)
    if as_json:
        document = {"plan": plan, "result": result, "timeline": list(timeline(world))}
        _print_json(document)
    else:
        click.secho(plan.name or f"seed {plan.seed}", bold=True)
        for line in describe_plan(plan):
            click.echo(f"  {line}")
        click.echo()
        for line in timeline(world):
            click.secho(line, **_style(line))
        click.echo()
        _print_result(result)
    if not result.kept:
        sys.exit(1)


def _style(line: str) -> dict[str, Any]:
    if "** BROKEN" in line:
        return {"fg": "red", "bold": True}
    return {"bold": True} if "** " in line else {}


def _print_result(result: Result) -> None:
    took = f"{format_duration(result.seconds)} simulated, {format_count(result.commits, 'commit')}"
    if result.kept:
        click.echo(f"Every promise kept: {took}")
        return
    click.secho(f"{format_count(len(result.violations), 'promise')} broken: {took}", fg="red")
    for violation in result.violations:
        click.echo(
            f"  {promise_title(violation.promise)}, at {violation.time:.1f} s: {violation.message}"
        )


# --- Many worlds ---------------------------------------------------------------------------------


def play_seeds(seeds: range, options: CampaignOptions, *, as_json: bool) -> None:
    """Play the worlds of some seeds; exits with 1 if a promise was broken."""
    play_all(play_seed, seeds, options, total=len(seeds), what="seed", as_json=as_json)


def play_crash_points(
    plans: Sequence[Plan], options: CampaignOptions, *, stale: bool, as_json: bool
) -> None:
    """Kill the controller at every request of some plans; exits with 1 if a promise was broken."""
    try:
        tasks = [(plan, point) for plan in plans for point in crash_points(plan)]
    except UnsoundPlan as error:
        raise UserError(f"a promise is broken in {error}; see --scenario") from None
    work: Callable[[tuple[Plan, Action]], Sequence[Outcome]]
    work = play_stale_point if stale else play_point
    play_all(work, tasks, options, total=len(tasks), what="crash point", as_json=as_json)


def play_all(
    work: Callable[[T], Sequence[Outcome]],
    items: Iterable[T],
    options: CampaignOptions,
    *,
    total: int,
    what: str,
    as_json: bool,
) -> None:
    """Play all items and print a report; Ctrl-C ends early and reports what was played."""
    clock = SystemClock()
    began = clock.monotonic()
    progress = Progress(sys.stderr, clock, total=total, what=f"{what}s")
    totals, done, interrupted = CampaignTotals(), 0, False
    try:
        for outcomes in run_in_parallel(work, items, jobs=options.jobs):
            for outcome in outcomes:
                totals.add(outcome)
            done += 1
            progress.show(done, f"{len(totals.broken)} broken" if totals.broken else "")
    except KeyboardInterrupt:
        interrupted = True
    except BrokenProcessPool:
        raise UserError("a process died, perhaps for lack of memory; try fewer --jobs") from None
    finally:
        progress.end()
    seconds = clock.monotonic() - began
    findings = _findings(totals, options.folder, shrunk=0 if interrupted else MAX_SHRUNK)
    if as_json:
        _print_json(as_json_object(totals, findings))
    else:
        worlds = "" if done == totals.runs else f" in {format_count(totals.runs, 'world')}"
        for line in report_lines(
            totals, findings, what=format_count(done, what) + worlds, seconds=seconds
        ):
            click.secho(line, fg="red" if line.startswith("BROKEN") else None)
    if interrupted:
        click.echo(f"stopped after {done:,} of {total:,} {what}s", err=True)
    if totals.broken or interrupted:
        sys.exit(1 if totals.broken else _INTERRUPTED)


def _findings(totals: CampaignTotals, folder: Path, *, shrunk: int) -> list[BrokenWorld]:
    """The broken promises with their replay files; the first few are shrunk."""
    findings = []
    for number, outcome in enumerate(totals.broken[:MAX_FILES]):
        assert outcome.plan is not None
        plan = outcome.plan
        if number < shrunk:
            plan = _shrink(outcome.plan, outcome.result)
        findings.append(save_replay(BrokenWorld(outcome, plan), folder))
    return findings


def _shrink(plan: Plan, result: Result) -> Plan:
    progress = Progress(sys.stderr, SystemClock(), total=MAX_PLAYS, what="attempts to shrink it")
    try:
        return shrink(plan, result.violations[0].promise, on_play=progress.show)
    except KeyboardInterrupt:
        return plan
    finally:
        progress.end()


def _print_json(document: object) -> None:
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    click.echo(text)
