"""What came of many simulated worlds: the figures, and for every broken promise a way to see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from everynode.cli.words import count_of, show_duration
from everynode.sim.campaign import Outcome, Tally
from everynode.sim.invariants import INVARIANTS
from everynode.sim.invariants.pace import Pace
from everynode.sim.invariants.promise import Breach
from everynode.sim.plan import Plan
from everynode.sim.replay import save, tell
from everynode.sim.upheavals import EVERY

MOST_FILES: Final = 20
_TITLES: Final = {
    **{each.id: each.title for each in INVARIANTS},
    Pace.id: Pace.title,
    "S0": "no process ends by itself",
    "L1": "the world settles, and stays so",
    "L2": "updates and new nodes take no longer than they must",
    "L5": "the way back leads back",
    "L6": "the end does not depend on the way",
    "L7": "no pod is created or deleted more often than without faults",
    "L8": "one stuck part costs its own slot and no more",
    "R8": "a first installation step by step withholds pods, and nothing else does",
}
# Every fault by its number, in order; one title stands for all that share a number.
_FAULTS: Final = {
    each.id: f"{each.id} {each.title}" for each in sorted(EVERY, key=lambda each: int(each.id[1:]))
}


class Finding(msgspec.Struct, frozen=True):
    """A broken promise: the plan as it was found, and as small as it was made."""

    outcome: Outcome
    plan: Plan  # shrunk, where that was tried
    path: Path | None = None  # of the replay file

    @property
    def breach(self) -> Breach:
        """The first promise that was broken."""
        return self.outcome.result.breaches[0]


def keep(finding: Finding, folder: Path) -> Finding:
    """Write the replay file."""
    return msgspec.structs.replace(finding, path=save(finding.plan, folder))


def title_of(promise: str) -> str:
    """What a promise says, in a few words."""
    found = _TITLES.get(promise) or _TITLES.get(promise.rstrip("abc"))
    return f"{promise} ({found})" if found else promise


# --- For people ----------------------------------------------------------------------------------


def lines(tally: Tally, findings: list[Finding], *, what: str, seconds: float) -> Iterator[str]:
    """Everything that is to be said at the end."""
    for finding in findings:
        yield from _of_finding(finding)
    more = len(tally.broken) - len(findings)
    if more > 0:
        yield f"and {more} more, for which no replay file was written"
    verdict = f"{len(tally.broken):,} broke a promise" if tally.broken else "every promise kept"
    yield f"{what}: {verdict}"
    yield from figures(tally, seconds)


def figures(tally: Tally, seconds: float) -> Iterator[str]:
    """How much was simulated, how fast, and what went wrong on purpose."""
    speed = f"{tally.seconds / seconds:,.0f} × real time" if seconds > 0 else "at once"
    yield f"  simulated   {show_duration(tally.seconds)} in {show_duration(seconds)}, {speed}"
    yield f"  commits     {tally.commits:,}, of which {tally.writes:,} by controllers"
    faults = {name: number for name, number in tally.struck.items() if name in _FAULTS}
    others = {name: number for name, number in tally.struck.items() if name not in _FAULTS}
    if faults:
        yield f"  faults      {sum(faults.values()):,} of {len(faults)} kinds:"
        yield from _table({_FAULTS[name]: faults[name] for name in _FAULTS if name in faults})
    yield f"  happenings  {sum(others.values()):,} of {len(others)} kinds" + (":" * (not faults))
    if not faults:
        yield from _table(dict(sorted(others.items())))


def _table(counts: Mapping[str, int]) -> Iterator[str]:
    """Names and numbers in two columns, read downwards."""
    wide = max(map(len, counts), default=0)
    cells = [f"{number:>9,}  {name:<{wide}}" for name, number in counts.items()]
    rows = -(-len(cells) // 2)
    for left, right in zip_longest(cells[:rows], cells[rows:], fillvalue=""):
        yield f"{left}{right}".rstrip()


def _of_finding(finding: Finding) -> Iterator[str]:
    breach, found = finding.breach, finding.outcome.plan
    yield f"BROKEN {title_of(breach.promise)}"
    yield f"  {finding.outcome.result.name}, at {breach.time:.1f} s: {breach.message}"
    if found is not None and found != finding.plan:
        yield f"  shrunk from {_size(found)} to {_size(finding.plan)}:"
    yield from (f"    {line}" for line in tell(finding.plan))
    if finding.path is not None:
        yield f"  replay it: everynode simulate --replay {finding.path}"
    yield ""


def _size(plan: Plan) -> str:
    return f"{count_of(len(plan.happenings), 'happening')} on {count_of(plan.nodes, 'node')}"


# --- For programs --------------------------------------------------------------------------------


def as_object(tally: Tally, findings: list[Finding]) -> dict[str, Any]:
    """The same for programs: nothing in it depends on the machine, or on how many cores it has."""
    return {
        "runs": tally.runs,
        "simulatedSeconds": round(tally.seconds, 3),
        "commits": tally.commits,
        "writes": tally.writes,
        "happenings": dict(sorted(tally.struck.items())),
        "trace": tally.trace,
        "broken": [_as_object(finding) for finding in findings],
        "brokenTotal": len(tally.broken),
    }


def _as_object(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.outcome.result.name,
        "promise": finding.breach.promise,
        "time": finding.breach.time,
        "message": finding.breach.message,
        "plan": finding.plan,
    }
