from __future__ import annotations

import stat
import threading

import pytest
import yaml

import everynode
from everynode.embedded_cluster import EmbeddedCluster
from tests.support.commands import everynode as run_everynode


def test_it_runs_inside_the_block_alone() -> None:
    with everynode.EmbeddedCluster(nodes=2, speed=20) as cluster:
        path = cluster.kubeconfig
        config = yaml.safe_load(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == cluster.url
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        result = run_everynode("get", "-A", "--kubeconfig", str(path))
        assert result.stderr == "No DaemonSets found in the cluster.\n"
    assert not path.parent.exists()
    assert "everynode" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(RuntimeError, match="does not run"):
        _ = cluster.kubeconfig


def test_two_run_beside_each_other_and_one_runs_again() -> None:
    one, two = EmbeddedCluster(nodes=0), EmbeddedCluster(nodes=0)
    with one, two:
        assert one.url != two.url
        with pytest.raises(RuntimeError, match="runs already"):
            one.__enter__()
    with one:
        assert one.url


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nodes": -1}, "nodes is -1: give a number from 0 to 16384"),
        ({"speed": 0}, "speed is 0: give a number from 0.001 to 10000"),
        ({"speed": float("nan")}, "speed is nan"),
        ({"zones": 27}, "zones is 27: give a number from 1 to 26"),
    ],
)
def test_a_number_out_of_range_is_named(options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        EmbeddedCluster(**options)  # type: ignore[arg-type]


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = everynode.nonsense  # type: ignore[attr-defined]


def test_the_names_of_the_package_are_listed() -> None:
    assert {"EmbeddedCluster", "forecast", "__version__"} <= {*dir(everynode)}
