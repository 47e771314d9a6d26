from __future__ import annotations

import json
import tomllib
from pathlib import Path

import yaml

from everynode.cli.kubernetes.node_config import NodeSite


def test_everything_of_a_node_is_in_its_folder_and_on_loopback(tmp_path: Path) -> None:
    NodeSite(tmp_path, "real-node", "en-abc", (10250, 10248)).write()
    containerd = tomllib.loads((tmp_path / "containerd.toml").read_text())
    network = json.loads((tmp_path / "cni" / "10-everynode.conflist").read_text())
    kubelet = yaml.safe_load((tmp_path / "kubelet.yaml").read_text())
    for path in (containerd["root"], containerd["state"], containerd["grpc"]["address"]):
        assert Path(path).is_relative_to(tmp_path)
    assert Path(network["plugins"][0]["ipam"]["dataDir"]).is_relative_to(tmp_path)
    assert kubelet["containerRuntimeEndpoint"] == f"unix://{containerd['grpc']['address']}"
    assert kubelet["address"] == "127.0.0.1"
    assert kubelet["cgroupRoot"] == f"/{network['plugins'][0]['bridge']}"
    assert (kubelet["port"], kubelet["healthzPort"]) == (10250, 10248)
