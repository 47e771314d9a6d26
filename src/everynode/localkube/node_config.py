"""Configuration files of a real node: containerd, CNI and kubelet, in one folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from everynode.localkube.control_plane_config import KUBELET_ADDRESS, SERVICE_CIDR

if TYPE_CHECKING:
    from everynode.localkube.certificates import Certificates

PAUSE = "example.test/pause:1"
CNI_PLUGINS = Path("/usr/lib/cni")
_ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class NodeLayout:
    """Folder, certificates, names, ports and subnet of a node on this machine."""

    folder: Path
    certificates: Certificates
    name: str
    tag: str  # names its cgroup, network and bridge (an interface name has at most 15 characters)
    ports: tuple[int, int]  # of kubelet's API and of its healthz
    subnet: int = 1  # third byte of its pods' addresses: 1 to 254
    shutdown_seconds: int = 0  # what a graceful shutdown takes; 0: kubelet does not wait for one

    @property
    def gateway(self) -> str:
        """The machine's address on the bridge of the pods."""
        return f"10.213.{self.subnet}.1"

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.folder / "containerd.sock"

    @property
    def kubelet_folder(self) -> Path:
        """Where kubelet keeps the volumes of its pods."""
        return self.folder / "kubelet"

    def registration(self) -> dict[str, object]:
        """The Node object.

        A kubelet never reports a loopback address as its own, and keeps the addresses of a node
        which exists, as those that a cloud provider has set.
        """
        addresses = [
            {"type": "InternalIP", "address": _ADDRESS},
            {"type": KUBELET_ADDRESS, "address": _ADDRESS},
            {"type": "Hostname", "address": self.name},
        ]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name},
            "status": {"addresses": addresses},
        }

    def write(self) -> None:
        """Write all the files."""
        (self.folder / "cni").mkdir(parents=True, exist_ok=True)
        (self.folder / "containerd.toml").write_text(self._containerd())
        (self.folder / "cni" / "10-everynode.conflist").write_text(json.dumps(self._network()))
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))

    def _containerd(self) -> str:
        # The native snapshotter copies files; unlike overlayfs it works on any file system.
        # Without `restrict_oom_score_adj` runc fails on machines where it may not be lowered.
        return f"""
version = 2
root = "{self.folder}/containerd/root"
state = "{self.folder}/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs"]
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
stream_server_address = "{_ADDRESS}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{self.folder}/cni"
"""

    def _network(self) -> dict[str, object]:
        """A bridge with a route to services and none to the outside."""
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": f"10.213.{self.subnet}.0/24", "gateway": self.gateway}]],
            "routes": [{"dst": SERVICE_CIDR, "gw": self.gateway}],
            "dataDir": str(self.folder / "addresses"),
        }
        bridge = {"type": "bridge", "bridge": self.tag, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": self.tag, "plugins": [bridge]}

    def _kubelet(self) -> dict[str, object]:
        port, health = self.ports
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": _ADDRESS,
            "port": port,
            "healthzPort": health,
            "tlsCertFile": str(self.certificates.serving_file),
            "tlsPrivateKeyFile": str(self.certificates.serving_key_file),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.certificates.ca_file)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.tag}",
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            # A nearly full disk of the machine must not evict pods.
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "2s",
            "shutdownGracePeriod": f"{self.shutdown_seconds}s",
            "resolvConf": "",
        }
