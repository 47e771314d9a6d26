"""Report of a campaign: statistics, and for every broken promise a replay file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from everynode.cli.terminal.text import format_count, format_duration
from everynode.sim.checks import CHECKS
from everynode.sim.checks.check import Violation
from everynode.sim.checks.request_rate import RequestRate
from everynode.sim.explore.campaign import CampaignTotals, Outcome
from everynode.sim.explore.replay import describe_plan, save
from everynode.sim.faults.catalogue import ALL_FAULTS
from everynode.sim.plans.plan import Plan

MAX_FILES: Final = 20
_TITLES: Final = {
    **{each.id: each.title for each in CHECKS},
    RequestRate.id: RequestRate.title,
    "S0": "no process ends by itself",
    "L1": "the world settles, and stays so",
    "L2": "updates and new nodes take no longer than they must",
    "L5": "the way back leads back",
    "L6": "the end does not depend on the way",
    "L7": "no pod is created or deleted more often than without faults",
    "L8": "one stuck part costs its own slot and no more",
    "R8": "a first installation step by step withholds pods, and nothing else does",
    "R9": "a missing pod comes back although another client writes the status",
}
# Faults by their number; faults that share a number share a title.
_FAULTS: Final = {
    each.id: f"{each.id} {each.title}"
    for each in sorted(ALL_FAULTS, key=lambda each: int(each.id[1:]))
}


class BrokenWorld(msgspec.Struct, frozen=True):
    """A broken promise: the outcome with the original plan, and the shrunk plan."""

    outcome: Outcome
    plan: Plan  # shrunk, where that was tried
    path: Path | None = None  # of the replay file

    @property
    def violation(self) -> Violation:
        """The first promise that was broken."""
        return self.outcome.result.violations[0]


def save_replay(finding: BrokenWorld, folder: Path) -> BrokenWorld:
    """Write the replay file."""
    return msgspec.structs.replace(finding, path=save(finding.plan, folder))


def promise_title(promise: str) -> str:
    """A promise's id with its title."""
    found = _TITLES.get(promise) or _TITLES.get(promise.rstrip("abc"))
    return f"{promise} ({found})" if found else promise


# --- For people ----------------------------------------------------------------------------------


def report_lines(
    totals: CampaignTotals, findings: list[BrokenWorld], *, what: str, seconds: float
) -> Iterator[str]:
    """The lines of the report."""
    for finding in findings:
        yield from _finding_lines(finding)
    more = len(totals.broken) - len(findings)
    if more > 0:
        yield f"and {more} more, for which no replay file was written"
    verdict = f"{len(totals.broken):,} broke a promise" if totals.broken else "every promise kept"
    yield f"{what}: {verdict}"
    yield from statistics_lines(totals, seconds)


def statistics_lines(totals: CampaignTotals, seconds: float) -> Iterator[str]:
    """How much was simulated, how fast, and which faults and actions occurred."""
    speed = f"{totals.seconds / seconds:,.0f} × real time" if seconds > 0 else "at once"
    yield f"  simulated   {format_duration(totals.seconds)} in {format_duration(seconds)}, {speed}"
    yield f"  commits     {totals.commits:,}, of which {totals.writes:,} by controllers"
    faults = {name: number for name, number in totals.fault_counts.items() if name in _FAULTS}
    others = {name: number for name, number in totals.fault_counts.items() if name not in _FAULTS}
    if faults:
        yield f"  faults      {sum(faults.values()):,} of {len(faults)} kinds:"
        yield from _table({_FAULTS[name]: faults[name] for name in _FAULTS if name in faults})
    yield f"  actions     {sum(others.values()):,} of {len(others)} kinds" + (":" * (not faults))
    if not faults:
        yield from _table(dict(sorted(others.items())))


def _table(counts: Mapping[str, int]) -> Iterator[str]:
    """Numbers and names in two columns, ordered from top to bottom."""
    wide = max(map(len, counts), default=0)
    cells = [f"{number:>9,}  {name:<{wide}}" for name, number in counts.items()]
    rows = -(-len(cells) // 2)
    for left, right in zip_longest(cells[:rows], cells[rows:], fillvalue=""):
        yield f"{left}{right}".rstrip()


def _finding_lines(finding: BrokenWorld) -> Iterator[str]:
    violation, found = finding.violation, finding.outcome.plan
    yield f"BROKEN {promise_title(violation.promise)}"
    yield f"  {finding.outcome.result.name}, at {violation.time:.1f} s: {violation.message}"
    if found is not None and found != finding.plan:
        yield f"  shrunk from {_size(found)} to {_size(finding.plan)}:"
    yield from (f"    {line}" for line in describe_plan(finding.plan))
    if finding.path is not None:
        yield f"  replay it: everynode simulate --replay {finding.path}"
    yield ""


def _size(plan: Plan) -> str:
    return f"{format_count(len(plan.actions), 'action')} on {format_count(plan.nodes, 'node')}"


# --- For programs --------------------------------------------------------------------------------


def as_json_object(totals: CampaignTotals, findings: list[BrokenWorld]) -> dict[str, Any]:
    """The report as JSON; it does not depend on the machine or the number of cores."""
    return {
        "runs": totals.runs,
        "simulatedSeconds": round(totals.seconds, 3),
        "commits": totals.commits,
        "writes": totals.writes,
        "happenings": dict(sorted(totals.fault_counts.items())),
        "trace": totals.trace,
        "broken": [_finding_object(finding) for finding in findings],
        "brokenTotal": len(totals.broken),
    }


def _finding_object(finding: BrokenWorld) -> dict[str, Any]:
    return {
        "name": finding.outcome.result.name,
        "promise": finding.violation.promise,
        "time": finding.violation.time,
        "message": finding.violation.message,
        "plan": finding.plan,
    }
