from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path

import yaml

from everynode.localkube.certificates import ADDRESSES, Certificates
from everynode.localkube.node_config import NodeLayout
from everynode.localkube.node_network import API_SERVICE


def layout_in(folder: Path, subnet: int = 1) -> NodeLayout:
    keys = Certificates.in_folder(folder / "keys", now=1_700_000_000.0)
    return NodeLayout(folder, keys, "real-node", "en-abc", (10250, 10248), subnet)


def test_everything_of_a_node_is_in_its_folder_and_on_loopback(tmp_path: Path) -> None:
    layout_in(tmp_path).write()
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


def test_pods_reach_services_over_the_nodes_own_address(tmp_path: Path) -> None:
    layout = layout_in(tmp_path, subnet=7)
    layout.write()
    network = json.loads((tmp_path / "cni" / "10-everynode.conflist").read_text())
    addresses = network["plugins"][0]["ipam"]
    assert addresses["ranges"] == [[{"subnet": "10.213.7.0/24", "gateway": layout.gateway}]]
    [route] = addresses["routes"]
    assert route["gw"] == layout.gateway == "10.213.7.1"
    # Without IP forwarding by the kernel, the bridge itself needs the address of the service.
    assert ipaddress.ip_address(API_SERVICE) in ipaddress.ip_network(route["dst"])
    assert API_SERVICE in ADDRESSES


def test_only_clients_with_a_certificate_of_the_cluster_reach_the_kubelet(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    layout.write()
    kubelet = yaml.safe_load((tmp_path / "kubelet.yaml").read_text())
    assert kubelet["authentication"] == {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": False},
        "x509": {"clientCAFile": str(layout.certificates.ca_file)},
    }
    assert kubelet["authorization"] == {"mode": "Webhook"}
    assert kubelet["tlsCertFile"] == str(layout.certificates.serving_file)
