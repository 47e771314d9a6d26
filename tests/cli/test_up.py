"""Starting and stopping a cluster, as people type it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sqlite3
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from everynode.cli.up import command
from everynode.clock import SystemClock
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from everynode.kube.requests import Request
from everynode.kube.resources import ADVANCED, DAEMONSETS, NODES, Resource
from tests.support.commands import Up, everynode, started

Object = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
decode = msgspec.json.Decoder(Object).decode


def ask(up: Up, *requests: Request) -> list[Object]:
    """Send requests with the kubeconfig."""

    async def send() -> list[Object]:
        clock = SystemClock()
        access = load_cluster_config(clock, kubeconfig=str(up.kubeconfig))
        client = Client(HttpTransport(access, clock), clock)
        try:
            return [
                await (client.write if verbs.is_write(each) else client.read)(each, decode)
                for each in requests
            ]
        finally:
            await client.close()

    return asyncio.run(send())


def refused(*arguments: str) -> str:
    """Type `everynode up` and return the one line with which it is refused."""
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UserError)
    assert "\n" not in str(result.exception)
    return str(result.exception)


def until_ready(up: Up, resource: Resource, name: str, wanted: int) -> None:
    """Watch a DaemonSet until that many of its pods are ready."""

    async def follow() -> None:
        clock = SystemClock()
        transport = HttpTransport(load_cluster_config(clock, kubeconfig=str(up.kubeconfig)), clock)
        client = Client(transport, clock)
        one = verbs.get(resource, name, namespace="default")
        while (found := await client.read(one, decode)).get("status", {}).get(
            "numberReady"
        ) != wanted:
            # Read to its end, a second later, so that no connection is left half-closed.
            version = found["metadata"]["resourceVersion"]
            stream = await transport.open(verbs.watch(resource, version=version, seconds=1))
            while await stream.readline():
                pass
        await transport.close()

    asyncio.run(follow())


def daemonset(resource: Resource, name: str) -> Request:
    labels = {"app": name}
    spec = {"containers": [{"name": "agent", "image": "agent:v1"}]}
    body = {
        "apiVersion": resource.api_version,
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    return verbs.create(resource, body, namespace="default")


def test_it_serves_both_kinds_of_daemonsets_on_as_many_nodes_as_were_asked_for(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--nodes", "4", "--zones", "2", "--speed", "20") as up:
        assert up.said[-1] == "ready"
        assert up.steps[:2] == [f"export KUBECONFIG={up.kubeconfig}", "kubectl get nodes"]
        assert "docs/first-daemonset.md goes on from there." in up.said
        [nodes] = ask(up, verbs.list_page(NODES))
        zones = [
            item["metadata"]["labels"]["topology.kubernetes.io/zone"] for item in nodes["items"]
        ]
        assert zones == ["zone-a", "zone-b", "zone-a", "zone-b"]
        ask(up, daemonset(DAEMONSETS, "native"), daemonset(ADVANCED, "advanced"))
        until_ready(up, DAEMONSETS, "native", 4)
        until_ready(up, ADVANCED, "advanced", 4)
        assert up.stop() == (0, "")


def test_it_serves_the_page_of_all_rollouts_until_it_stops(tmp_path: Path) -> None:
    with started(tmp_path, "--nodes", "1") as up:
        [address] = [line.split()[-1] for line in up.said if line.startswith("dashboard at ")]
        with urlopen(f"{address}api/sets", timeout=60) as answer:
            assert json.load(answer)["sets"] == []
        ask(up, daemonset(ADVANCED, "advanced"))
        until_ready(up, ADVANCED, "advanced", 1)
        with urlopen(f"{address}api/set/ads/default/advanced/nodes", timeout=60) as answer:
            assert [row["node"] for row in json.load(answer)["rows"]] == ["node-0001"]
        port = address.rstrip("/").rsplit(":", 1)[1]
        taken = refused("--kubeconfig", str(tmp_path / "other"), "--dashboard-port", port)
        assert taken.endswith("choose another --dashboard-port")
        assert up.stop() == (0, "")
        with pytest.raises(URLError):
            urlopen(address, timeout=60)


def test_it_can_leave_out_the_page(tmp_path: Path) -> None:
    with started(tmp_path, "--nodes", "0", "--no-dashboard") as up:
        assert not [line for line in up.said if line.startswith("dashboard at ")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_cleanly_when_told(how: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path, "--nodes", "1") as up:
        assert up.stop(how) == (0, "")
        assert up.said[-1] == f"stopped, removed the kubeconfig {up.kubeconfig}"
        assert not up.kubeconfig.exists()


def test_a_kubeconfig_that_is_there_keeps_what_is_in_it(tmp_path: Path) -> None:
    mine = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "work", "cluster": {"server": "https://work.example"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
        "current-context": "work",
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(mine))
    with started(tmp_path, "--nodes", "0") as up:
        assert "kubectl --context everynode get nodes" in up.steps
        written = yaml.safe_load(up.kubeconfig.read_text())
        assert [each["name"] for each in written["contexts"]] == ["work", "everynode"]
        assert written["current-context"] == "work"
        assert up.kubeconfig.stat().st_mode & 0o777 == 0o600
        up.stop()
        removed = f"removed the context everynode from the kubeconfig {up.kubeconfig}"
        assert up.said[-1] == f"stopped, {removed}"
        assert yaml.safe_load(up.kubeconfig.read_text()) == mine


def test_a_second_cluster_in_the_same_kubeconfig_says_that_it_replaces_the_first(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--nodes", "0") as first:
        server = yaml.safe_load(first.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        with started(tmp_path, "--nodes", "0") as second:
            assert second.stop() == (
                0,
                (
                    f"warning: {first.kubeconfig} led to {server}, and leads to this cluster now; "
                    "give each of two clusters a file with --kubeconfig\n"
                ),
            )


def test_a_data_folder_keeps_the_cluster_and_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    data = ("--nodes", "2", "--data", str(tmp_path / "data"))
    body = {"metadata": {"name": "kept"}, "data": {"key": "value"}}
    with started(tmp_path, *data) as up:
        ask(up, verbs.create(CONFIG_MAPS, body, namespace="default"))
        second = refused(*data, "--kubeconfig", str(tmp_path / "other"))
        assert second.startswith("the data folder ")
        up.process.kill()
        up.process.wait()
    with started(tmp_path, *data) as up:
        [found] = ask(up, verbs.get(CONFIG_MAPS, "kept", namespace="default"))
        assert found["data"] == {"key": "value"}


def test_a_busy_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        kubeconfig = tmp_path / "kubeconfig"
        result = everynode("up", "--port", str(port), "--kubeconfig", str(kubeconfig))
    assert result.returncode == 1
    assert result.stderr.startswith(f"everynode: cannot listen on 127.0.0.1:{port}")
    assert result.stderr.count("\n") == 1
    assert not kubeconfig.exists()


def test_a_kubeconfig_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused("--kubeconfig", str(tmp_path / "file" / "kubeconfig"))
    assert said.startswith("cannot ")
    assert "choose another with --kubeconfig" in said


def test_a_kubeconfig_in_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    result = everynode("up", "--kubeconfig", str(tmp_path / "missing" / "kubeconfig"))
    assert result.returncode == 1
    assert result.stderr.startswith("everynode: cannot write the kubeconfig ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kubeconfig = str(tmp_path / "kubeconfig")
    said = refused("--data", str(tmp_path / "file" / "data"), "--kubeconfig", kubeconfig)
    assert said.startswith("the data folder ")
    assert said.endswith("; choose another folder with --data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cluster.db").write_text("something else")
    said = refused("--data", str(tmp_path / "data"), "--kubeconfig", kubeconfig)
    assert "is not a cluster's data" in said


def test_damaged_data_is_one_clear_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(tmp_path, "--nodes", "1", "--data", str(data)):
        pass
    database = sqlite3.connect(data / "cluster.db")
    with database:
        database.execute("UPDATE objects SET body = 'no JSON' WHERE collection = 'nodes'")
    database.close()
    said = refused("--data", str(data), "--kubeconfig", str(tmp_path / "config"))
    assert said.startswith(f"{data / 'cluster.db'} is damaged: an object of nodes cannot be read")
    assert said.endswith("or choose another folder")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--nodes", "-1"),
        ("--speed", "0"),
        ("--speed", "nan"),
        ("--zones", "0"),
        ("--port", "70000"),
        ("--data", ""),
    ],
)
def test_wrong_values_are_refused(wrong: tuple[str, str]) -> None:
    assert CliRunner().invoke(command, wrong).exit_code == 2
