"""Telling nodes and images of a running cluster what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everynode.cli.node import command
from everynode.kube import verbs
from everynode.kube.resources import NODES
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
