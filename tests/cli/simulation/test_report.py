from __future__ import annotations

from everynode.cli.simulation.report import (
    as_json_object,
    promise_title,
    report_lines,
    statistics_lines,
)
from everynode.sim.explore.campaign import CampaignTotals, Outcome
from everynode.sim.world import Result


def totals(**fault_counts: int) -> CampaignTotals:
    found = CampaignTotals()
    names = {name.replace("_", "-"): number for name, number in fault_counts.items()}
    result = Result(1, "seed 1", 7200.0, 1200, 300, "t", fault_counts=names)
    found.add(Outcome(result))
    return found


def test_speed_and_commits_are_printed() -> None:
    said = list(statistics_lines(totals(), 4.0))
    assert said[0] == "  simulated   2 h in 4 s, 1,800 × real time"
    assert said[1] == "  commits     1,200, of which 300 by controllers"


def test_faults_are_printed_by_number_and_name_in_their_order() -> None:
    said = list(statistics_lines(totals(F10=3, F2=1, crash_after=1, quirk=4), 4.0))
    assert said[2] == "  faults      4 of 2 kinds:"
    assert said[3].split("  ")[-1].startswith("F10 ")
    assert said[3].strip().startswith("1  F2 crash after the commit")
    assert said[4] == "  actions     5 of 2 kinds"


def test_actions_are_listed_by_name_where_no_fault_was_drawn() -> None:
    said = list(statistics_lines(totals(crash_after=1200, set_image=4), 4.0))
    assert said[2] == "  actions     1,204 of 2 kinds:"
    assert said[3].split() == ["1,200", "crash-after", "4", "set-image"]


def test_kept_promises_take_one_line() -> None:
    first, *_ = report_lines(totals(), [], what="1 seed", seconds=1.0)
    assert first == "1 seed: every promise kept"


def test_promises_are_printed_by_their_titles() -> None:
    assert promise_title("L1") == "L1 (the world settles, and stays so)"
    assert promise_title("S1a").startswith("S1a (maxUnavailable")
    assert promise_title("Z9") == "Z9"


def test_programs_are_told_nothing_that_depends_on_the_machine() -> None:
    said = as_json_object(totals(quirk=4), [])
    assert said["simulatedSeconds"] == 7200.0
    assert said["happenings"] == {"quirk": 4}
    assert said["broken"] == []
    assert not any("wall" in key or "speed" in key for key in said)
