from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.errors import UserError
from tests.cli.access.test_connection import server
from tests.support.commands import kubeconfig


def test_the_options_arrive_together() -> None:
    seen: list[ClusterOptions] = []

    @click.command()
    @cluster_options
    def command(*, access: ClusterOptions) -> None:
        """Do nothing."""
        seen.append(access)

    asked = ["-n", "agents", "--context", "here", "--kubeconfig", "file"]
    assert CliRunner().invoke(command, asked).exit_code == 0
    assert seen == [ClusterOptions("file", "here", "agents")]
    assert CliRunner().invoke(command, ["-n", "Not a namespace"]).exit_code == 2


def test_kubectl_is_asked_about_the_same_namespace() -> None:
    assert ClusterOptions(context="here").kubectl_arguments("agents") == [
        "--context",
        "here",
        "--namespace",
        "agents",
    ]


async def test_the_namespace_is_that_of_the_option_or_of_the_context(tmp_path: Path) -> None:
    async def opened(**given: str) -> Cluster:
        options = ClusterOptions(kubeconfig(tmp_path, url), **given)
        async with open_cluster(options) as cluster:
            return cluster

    async with server('{"major": "1", "minor": "36"}') as url:
        assert (await opened()).namespace == "default"
        assert (await opened(namespace="agents")).namespace == "agents"


async def test_a_suggested_command_reaches_the_same_cluster_and_namespace(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    async with server('{"major": "1", "minor": "36"}') as url:
        path = kubeconfig(folder, url)
        async with open_cluster(ClusterOptions(path, "here", "agents")) as cluster:
            assert cluster.where("default") == f" --context here --kubeconfig '{path}'"
            assert cluster.where("agents").startswith(" -n agents --context here ")
        own = kubeconfig(folder, url, namespace="own")
        async with open_cluster(ClusterOptions(own)) as cluster:
            assert (cluster.namespace, cluster.home) == ("own", "own")
            assert cluster.where("own") == f" --kubeconfig '{path}'"
            assert cluster.where("default") == f" -n default --kubeconfig '{path}'"


async def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    options = ClusterOptions(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    with pytest.raises(UserError, match="cannot reach the API server"):
        async with open_cluster(options):
            pass
