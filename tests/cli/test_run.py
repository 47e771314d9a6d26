"""Starting the controller, as people type it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from everynode.cli.run import command
from everynode.decide.pods.build import OWN_SCHEDULER
from everynode.errors import UsageError, UserError
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS, PODS
from tests.cli.test_up import ask, daemonset, until_ready
from tests.support.commands import Up, everynode, kubeconfig, started

NOWHERE = ("--health-address", "0", "--metrics-address", "0")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without a DaemonSet controller."""
    with started(tmp_path_factory.mktemp("up"), "--no-controller", "--speed", "20") as cluster:
        yield cluster


def refused(*arguments: str) -> str:
    """Type `everynode run` and return the one line with which it ends."""
    result = CliRunner().invoke(command, [*arguments, *NOWHERE])
    assert isinstance(result.exception, UserError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_it_serves_a_cluster_that_was_started_without_a_controller(up: Up) -> None:
    [install, run] = [step for step in up.steps if "everynode " in step][:2]
    assert install.endswith("everynode install")
    assert run.endswith("everynode run --native &")
    path = ("--kubeconfig", str(up.kubeconfig))
    assert "--lease-namespace" in refused(*path)
    assert everynode("install", *path).returncode == 0
    arguments = [sys.executable, "-m", "everynode", "run", "--native", *path, *NOWHERE]
    with subprocess.Popen([*arguments, "--log-level", "error"], stderr=subprocess.PIPE) as process:
        ask(up, daemonset(DAEMONSETS, "native"), daemonset(ADVANCED, "advanced"))
        until_ready(up, DAEMONSETS, "native", 3)
        until_ready(up, ADVANCED, "advanced", 3)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120)[1] == b""
    assert process.returncode == 0


def test_without_a_scheduler_it_creates_pods_with_a_node_name(up: Up) -> None:
    path = ("--kubeconfig", str(up.kubeconfig))
    assert everynode("install", *path).returncode == 0
    arguments = [sys.executable, "-m", "everynode", "run", *path, *NOWHERE, "--log-level", "error"]
    with subprocess.Popen([*arguments, "--no-schedule-daemonset-pods"]) as process:
        ask(up, daemonset(ADVANCED, "bound"))
        until_ready(up, ADVANCED, "bound", 3)
        [pods] = ask(up, verbs.list_page(PODS))
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)
    schedulers = [
        pod["spec"]["schedulerName"]
        for pod in pods["items"]
        if pod["metadata"]["ownerReferences"][0]["name"] == "bound"
    ]
    assert schedulers == [OWN_SCHEDULER] * 3


def test_credentials_that_are_not_accepted_end_it(up: Up, tmp_path: Path) -> None:
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "expired"}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    assert "wrong or have expired; log in again" in refused("--kubeconfig", str(path))


@pytest.mark.parametrize(
    ("server", "line"),
    [
        ("https://127.0.0.1:1", "cannot reach the API server: 127.0.0.1:1: cannot connect: Conn"),
        ("https://nowhere.invalid:1", "cannot reach the API server: nowhere.invalid:1: cannot co"),
    ],
)
def test_a_server_that_is_not_there_ends_it(server: str, line: str, tmp_path: Path) -> None:
    assert refused("--kubeconfig", kubeconfig(tmp_path, server)).startswith(line)


def test_a_wrong_context_ends_it(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "https://127.0.0.1:1")
    said = refused("--kubeconfig", path, "--context", "there")
    assert said == f"the kubeconfig asks for context 'there'; there are: here (in {path})"


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "localhost.example"])
def test_the_page_is_served_on_loopback_alone(host: str) -> None:
    result = CliRunner().invoke(command, ["--dashboard-address", f"{host}:8082"])
    assert result.exit_code != 0
    assert "127.0.0.1:8082 and reach it by kubectl port-forward" in str(result.exception)


def test_an_address_that_makes_no_sense_ends_it(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "https://127.0.0.1:1")
    result = CliRunner().invoke(command, ["--kubeconfig", path, "--health-address", "here"])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith("--health-address here: write it as host:port")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--no-advanced",),
        ("--namespace", "Not a name"),
        ("--lease-namespace", "-"),
        ("--log-level", "loud"),
        ("more",),
    ],
)
def test_wrong_usage_is_refused(wrong: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, wrong).exit_code == 2
