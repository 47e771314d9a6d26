from __future__ import annotations

import json
from pathlib import Path

import yaml

from everynode.cli.plan import command
from tests.support.commands import Up, typed
from tests.support.stage import daemonset


def printed(up: Up, *arguments: str) -> str:
    result = typed(command, up, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_summary_says_what_changes_how_long_it_takes_and_in_which_order(rollouts: Up) -> None:
    text = printed(rollouts, "done", "--set-image", "agent=a:2", "--start", "20s", "--stop", "10s")
    assert text.startswith("ads/done in default on 6 nodes: a plan\n")
    assert "template.spec.containers[agent].image: agent:v1 → a:2" in text
    assert "until it is Ready, 10 s to stop" in text
    assert "Ready: given with --start" in text
    assert "the new version runs on all 5 nodes." in text
    assert "recreate     5 nodes: the strategy replaces pods" in text
    assert "not-eligible 1 node: taint gpu:NoSchedule is not tolerated" in text
    assert "order        node-0006, node-0005, node-0004, node-0003, node-0002" in text
    assert "warning: spec.minReadySeconds: is 0" in text
    assert "ORDER" not in text


def test_a_table_of_the_nodes_on_request(rollouts: Up) -> None:
    for option in ("--nodes", "-owide"):
        lines = printed(rollouts, "held", option).splitlines()
        table = lines[lines.index("") :]
        head = next(line for line in table if line.startswith("ORDER"))
        assert head.split() == ["ORDER", "NODE", "ACTION", "BEGINS", "AVAILABLE", "REASON"]
    rows = [line.split() for line in table[table.index(head) + 1 :]]
    assert [row[:2] for row in rows] == [
        ["node-0001", "not-eligible"],
        ["node-0002", "held"],
        ["node-0003", "held"],
        ["node-0004", "held"],
        ["node-0005", "current"],
        ["node-0006", "current"],
    ]


def test_a_stalled_rollout_stays_as_it_is_and_a_new_version_cures_it(rollouts: Up) -> None:
    text = printed(rollouts, "stuck")
    assert "change     none: how the rollout goes on as it is" in text
    assert "Stops from the start at 0 of 5 nodes" in text
    assert "down         at most 0 at once, promised 1; 1 node down before it begins\n" in text
    assert "\n\n\n" not in text
    cured = json.loads(printed(rollouts, "stuck", "--set-image", "agent=a:9", "-o", "json"))
    assert cured["forecast"]["ending"] == "complete"
    assert cured["order"][0] == "node-0006"


def test_the_pace_counts_the_nodes_that_are_still_to_come(rollouts: Up) -> None:
    asked = ("held", "--partition", "0", "--start", "20s", "--stop", "10s")
    forecast = json.loads(printed(rollouts, *asked, "-o", "json"))["forecast"]
    assert (forecast["updated"], forecast["curve"][0][1]) == (5, 2)
    assert f"pace         {3 * 60 / forecast['seconds']:.1f} nodes" in printed(rollouts, *asked)


def test_a_first_installation_in_a_built_in_priority_class(rollouts: Up, tmp_path: Path) -> None:
    manifest = daemonset("fresh", template={"spec": {"priorityClassName": "system-node-critical"}})
    path = tmp_path / "fresh.yaml"
    path.write_text(yaml.safe_dump(manifest))
    assert "the new version runs on all 5 nodes." in printed(rollouts, "-f", str(path))
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "system-unknown"
    path.write_text(yaml.safe_dump(manifest))
    text = printed(rollouts, "-f", str(path))
    assert "Does not begin: the API server refuses a pod of the new version" in text
    assert "no PriorityClass with name system-unknown was found" in text


def test_programs_get_every_field(rollouts: Up) -> None:
    asked = ("held", "--set-image", "agent=a:3", "--partition", "0")
    document = json.loads(printed(rollouts, *asked, "-o", "json"))
    assert list(document) == [
        "apiVersion",
        "kind",
        "namespace",
        "name",
        "exists",
        "changes",
        "durations",
        "forecast",
        "actions",
        "order",
        "dryRun",
        "warnings",
        "missingPermissions",
        "items",
    ]
    assert document["actions"] == {"not-eligible": 1, "recreate": 5}
    first = next(each for each in document["items"] if each["order"] == 1)
    assert first["node"] == "node-0006"
    assert 0 <= first["begins"] <= first["available"]
    assert yaml.safe_load(printed(rollouts, *asked, "-o", "yaml")).keys() == document.keys()


def test_a_page_plays_the_plan(rollouts: Up, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    printed(rollouts, "done", "--set-image", "agent=a:2", "--html", str(page))
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "node-0006" in text
    failed = typed(command, rollouts, "done", "--html", str(tmp_path / "no" / "page.html"))
    assert "choose another file" in str(failed.exception)


def test_a_chart_shows_the_plan(rollouts: Up, tmp_path: Path) -> None:
    chart = tmp_path / "plan.svg"
    text = printed(rollouts, "done", "--set-image", "agent=a:2", "--svg", str(chart))
    assert "done on 5 nodes: a plan" in chart.read_text()
    assert next(line for line in text.splitlines() if line.startswith("Complete after"))


def test_a_manifest_from_a_file_or_standard_input(rollouts: Up, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(daemonset("fresh")))
    text = printed(rollouts, "-f", str(file), "--no-dry-run")
    assert "a first installation: there is no such DaemonSet yet" in text
    assert "create       5 nodes: it should have a pod and has none" in text
