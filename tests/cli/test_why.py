from __future__ import annotations

import itertools
import json
import re

from everynode.cli.why import command
from tests.support.commands import Up, typed


def test_the_chain_of_a_node_that_waits(rollouts: Up) -> None:
    result = typed(command, rollouts, "node-0006", "stuck")
    assert result.exit_code == 0
    text = result.stdout
    assert text.startswith("! node-0006 in ads/stuck, namespace default: waiting\n")
    words = re.findall(r"^  (\w+(?: \w+)?)  ", text, re.M)
    assert words == ["eligible", "scope", "revision", "pod", "waits for", "events", "what helps"]
    assert "in scope: the update may reach it [R2]" in text
    assert re.search(r"revision    2 \(\w+\), the target \[R1\]", text)
    assert "everynode logs ads/stuck --node node-0006" in text


def test_a_node_that_waits_for_its_turn_has_a_place(rollouts: Up) -> None:
    text = typed(command, rollouts, "node-0002", "stuck").stdout
    assert "waits for   its turn" in text
    assert "place 4 of 4; 1 of 1 nodes that maxUnavailable 20% allows are down [R4]" in text


def test_a_held_node_says_what_holds_it_and_what_releases_it(rollouts: Up) -> None:
    text = typed(command, rollouts, "node-0002", "ads/held").stdout
    assert "held: partition 3 keeps 3 nodes back, the first by name [R2]" in text
    assert "that of its pod: a held node keeps what it has [R3]" in text
    assert "partition" in text.splitlines()[-1]


def test_a_tainted_node_is_not_eligible(rollouts: Up) -> None:
    text = typed(command, rollouts, "node-0001", "done").stdout
    assert "eligible    no: taint gpu:NoSchedule is not tolerated" in text


def test_without_a_name_every_daemonset_is_listed(rollouts: Up) -> None:
    lines = typed(command, rollouts, "node-0006").stdout.splitlines()
    titles = [line for line in lines if " in a" in line or " in ds" in line]
    assert [title.split()[3] for title in titles] == [
        "ads/done,",
        "ads/held,",
        "ads/net,",
        "ds/net,",
        "ads/stuck,",
    ]
    assert sum("what helps" in line for line in lines) == 1
    assert all(one or other for one, other in itertools.pairwise([*lines, ""]))


def test_programs_get_the_facts(rollouts: Up) -> None:
    [item] = json.loads(typed(command, rollouts, "node-0006", "stuck", "-o", "json").stdout)[
        "items"
    ]
    assert item["reason"] == "NotReady"
    assert (item["revision"], item["wantedRevision"], item["ready"]) == (2, 2, False)
    assert item["since"]
    assert {"about": "scope", "text": "in scope: the update may reach it", "rule": "R2"} in item[
        "facts"
    ]
    assert item["events"]


def test_a_node_that_is_not_there_is_named(rollouts: Up) -> None:
    result = typed(command, rollouts, "node-9999", "done")
    assert str(result.exception) == "there is no node node-9999; `kubectl get nodes` lists all"
    assert "there are no DaemonSets in namespace kube-system" in str(
        typed(command, rollouts, "node-0001", "-n", "kube-system").exception
    )
    assert typed(command, rollouts, "node-0001", "done", "-A").exit_code == 2
