from __future__ import annotations

import json

import yaml

from everynode.cli.get import command
from tests.cli.conftest import EXPECTED
from tests.support.commands import Up, typed


def test_a_line_for_each_set_of_both_kinds(rollouts: Up) -> None:
    result = typed(command, rollouts)
    assert result.exit_code == 0
    head, *lines = [line.split() for line in result.stdout.splitlines()]
    assert head == ["NAME", "DESIRED", "UPDATED", "AVAILABLE", "HELD", "WAITING", "STATE", "AGE"]
    assert {line[0]: line[6] for line in lines} == EXPECTED
    assert {line[0]: line[1:6] for line in lines} == {
        "ads/done": ["5", "5", "5", "0", "0"],
        "ads/held": ["5", "2", "5", "3", "0"],
        "ads/net": ["5", "5", "5", "0", "0"],
        "ads/stuck": ["5", "0", "4", "0", "1"],
        "ds/net": ["5", "5", "5", "0", "0"],
    }


def test_programs_get_names_and_documents(rollouts: Up) -> None:
    names = typed(command, rollouts, "-A", "-o", "name").stdout.splitlines()
    assert names[:2] == ["daemonset.apps.kruise.io/done", "daemonset.apps.kruise.io/held"]
    [stuck] = json.loads(typed(command, rollouts, "stuck", "-o", "json").stdout)["items"]
    assert (stuck["state"], stuck["waitingNodes"]) == ("waiting", {"NotReady": ["node-0006"]})
    assert stuck["budget"] == {
        "field": "maxUnavailable",
        "value": "20%",
        "promised": 1,
        "used": 1,
    }
    [same] = yaml.safe_load(typed(command, rollouts, "ads/stuck", "-o", "yaml").stdout)["items"]
    assert same["revision"] == stuck["revision"] == 2


def test_wide_names_images_and_what_nodes_wait_for(rollouts: Up) -> None:
    wide = typed(command, rollouts, "-A", "-o", "wide").stdout
    assert "NAMESPACE   NAME" in wide
    assert "1 NotReady" in wide
    assert "a:never-ready" in wide


def test_a_selector_selects_and_a_bad_one_is_named(rollouts: Up) -> None:
    assert typed(command, rollouts, "-l", "team=none").stderr == (
        "No DaemonSets found in namespace default.\n"
    )
    bad = typed(command, rollouts, "-l", "a in")
    assert "--selector a in:" in str(bad.exception)
    assert typed(command, rollouts, "done", "-A").exit_code == 2
    assert typed(command, rollouts, "-o", "xml").exit_code == 2


def test_a_name_of_both_kinds_or_of_none_is_an_error(rollouts: Up) -> None:
    assert "type ads/net or ds/net" in str(typed(command, rollouts, "net").exception)
    assert "`everynode get -A` lists all" in str(typed(command, rollouts, "nope").exception)
    assert "give NAME, ads/NAME" in str(typed(command, rollouts, "deploy/x").exception)
