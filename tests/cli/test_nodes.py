from __future__ import annotations

import json

from everynode.cli.nodes import command
from tests.support.commands import Up, typed


def names(up: Up, *arguments: str) -> list[str]:
    printed = typed(command, up, *arguments, "-o", "name").stdout
    return [line.removeprefix("node/node-000") for line in printed.splitlines()]


def test_a_line_for_each_node(rollouts: Up) -> None:
    head, *lines = typed(command, rollouts, "stuck").stdout.splitlines()
    assert head.split() == ["NODE", "STANDING", "REVISION", "POD", "SINCE", "REASON"]
    assert [line.split()[:3] for line in lines] == [
        ["node-0002", "queued", "1"],
        ["node-0003", "queued", "1"],
        ["node-0004", "queued", "1"],
        ["node-0005", "queued", "1"],
        ["node-0006", "waiting", "2"],
    ]
    assert lines[-1].endswith("NotReady")
    wide = typed(command, rollouts, "stuck", "-o", "wide").stdout
    assert "taint gpu:NoSchedule is not tolerated" in wide
    assert "runs, but is not Ready" in wide


def test_filters(rollouts: Up) -> None:
    assert names(rollouts, "stuck", "--old") == ["2", "3", "4", "5"]
    assert names(rollouts, "stuck", "--waiting") == ["6"]
    assert names(rollouts, "stuck", "--reason", "notready") == ["6"]
    assert names(rollouts, "held", "--held") == ["2", "3", "4"]
    zone_b = "topology.kubernetes.io/zone=zone-b"
    assert names(rollouts, "held", "--held", "-l", zone_b) == ["2"]
    assert typed(command, rollouts, "done", "--old").stderr == "No such nodes.\n"
    assert "--selector =:" in str(typed(command, rollouts, "done", "-l", "=").exception)


def test_programs_get_every_field(rollouts: Up) -> None:
    items = json.loads(typed(command, rollouts, "held", "-o", "json").stdout)["items"]
    assert [item["standing"] for item in items] == ["not-eligible", *["held"] * 3, *["updated"] * 2]
    held = items[1]
    assert (held["revision"], held["wantedRevision"], held["ready"]) == (1, 1, True)
    assert held["pod"].startswith("held-")
