"""`everynode node`: stop, start, drain and reboot nodes of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everynode.cli.node import command
from everynode.kube import verbs
from everynode.kube.resources import NODES, PODS
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed

PREFIX = "sim.everynode.io/"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder: Path = tmp_path_factory.mktemp("up")
    with started(folder, "--nodes", "3", "--speed", "100") as running:
        yield running


def told(up: Up, name: str) -> dict[str, str]:
    [node] = ask(up, verbs.get(NODES, name))
    found: dict[str, str] = node["metadata"].get("annotations", {})
    return {key.removeprefix(PREFIX): value for key, value in found.items() if PREFIX in key}


def test_nodes_are_stopped_slowed_pressed_and_started(up: Up) -> None:
    assert typed(command, up, "stop", "node-0001", "node-0002").stdout == (
        "node/node-0001 stopped\nnode/node-0002 stopped\n"
    )
    assert told(up, "node-0001") == {"stopped": "true"}
    assert typed(command, up, "slow", "node-0001", "2.5").exit_code == 0
    assert typed(command, up, "press", "node-0001", "disk").exit_code == 0
    assert told(up, "node-0001") == {"stopped": "true", "slow": "2.5", "pressure": "disk"}
    assert typed(command, up, "start", "node-0001", "node-0002").exit_code == 0
    assert told(up, "node-0001") == told(up, "node-0002") == {}


def test_a_node_is_maintained_and_shut_down(up: Up) -> None:
    assert typed(command, up, "maintenance", "node-0003", "--condition", "Drained").stdout == (
        "node/node-0003 Drained=True\n"
    )
    [node] = ask(up, verbs.get(NODES, "node-0003"))
    found = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert found["Drained"] == "True"
    cleared = typed(command, up, "maintenance", "node-0003", "--condition", "Drained", "--clear")
    assert cleared.stdout == "node/node-0003 Drained=False\n"
    assert typed(command, up, "shutdown", "node-0003").exit_code == 0
    assert told(up, "node-0003") == {"shutdown": "true"}
    assert typed(command, up, "start", "node-0003").exit_code == 0


def test_nodes_join_are_drained_rebooted_and_removed(up: Up) -> None:
    assert typed(command, up, "add", "2", "--label", "pool=new").stdout == (
        "node/node-0004 created\nnode/node-0005 created\n"
    )
    [node] = ask(up, verbs.get(NODES, "node-0004"))
    labels = node["metadata"]["labels"]
    assert (labels["pool"], labels["topology.kubernetes.io/zone"]) == ("new", "zone-a")
    pod = {
        "metadata": {"name": "one"},
        "spec": {"nodeName": "node-0005", "containers": [{"name": "a", "image": "a:1"}]},
    }
    ask(up, verbs.create(PODS, pod, namespace="default"))
    drained = typed(command, up, "drain", "node-0005")
    assert drained.stdout == "node/node-0005 drained: 1 pod evicted\n"
    [node] = ask(up, verbs.get(NODES, "node-0005"))
    assert node["spec"]["unschedulable"] is True
    assert typed(command, up, "remove", "node-0005").stdout.startswith("node/node-0005 deleted")
    [nodes] = ask(up, verbs.list_page(NODES))
    assert "node-0005" not in [each["metadata"]["name"] for each in nodes["items"]]
    assert typed(command, up, "reboot", "node-0004").stdout == "node/node-0004 reboots\n"
    assert told(up, "node-0004")["boot"]
    assert typed(command, up, "remove", "node-0004").exit_code == 0


@pytest.mark.parametrize("wrong", [("add", "0"), ("add", "--label", "x")])
def test_wrong_numbers_and_labels_are_refused(up: Up, wrong: tuple[str, ...]) -> None:
    assert typed(command, up, *wrong).exit_code == 2


def test_a_node_is_slowed_by_a_number_only(up: Up) -> None:
    assert [typed(command, up, "slow", "node-0001", wrong).exit_code for wrong in ("0", "nan")] == [
        2,
        2,
    ]


def test_a_node_that_is_not_there_is_named(up: Up) -> None:
    result = typed(command, up, "stop", "node-9999")
    assert str(result.exception) == "there is no node node-9999; `kubectl get nodes` lists all"


def test_a_real_node_is_left_alone(up: Up) -> None:
    status = {"nodeInfo": {"osImage": "Debian"}, "allocatable": {"cpu": "1"}}
    ask(up, verbs.create(NODES, {"metadata": {"name": "real"}, "status": status}))
    result = typed(command, up, "stop", "real")
    assert "real one" in str(result.exception)
    ask(up, verbs.delete(NODES, "real"))
