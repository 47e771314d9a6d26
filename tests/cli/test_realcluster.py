"""`everynode up --kubernetes`: simulated nodes behind a real control plane."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS, LEASES, NODES
from everynode.kube.verbs import Scope
from tests import kubernetes
from tests.cli.test_up import ask, daemonset, until_ready
from tests.cli.upped import started

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def _programs() -> None:
    kubernetes.programs()


def test_both_kinds_of_daemonsets_run_on_simulated_nodes(tmp_path: Path) -> None:
    with started(tmp_path, "--kubernetes", "--nodes", "5", "--speed", "10") as up:
        ask(up, daemonset(DAEMONSETS, "native"), daemonset(ADVANCED, "advanced"))
        until_ready(up, DAEMONSETS, "native", 5)
        until_ready(up, ADVANCED, "advanced", 5)
        nodes, leases = ask(
            up,
            verbs.list_page(NODES),
            verbs.list_page(LEASES, scope=Scope("kube-node-lease")),
        )
        assert [node["spec"].get("taints") for node in nodes["items"]] == [None] * 5
        assert len(leases["items"]) == 5
        assert up.stop(signal.SIGINT)[0] == 0
