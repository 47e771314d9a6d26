"""Configuration of the control plane: flags, tokens and kubeconfigs of its four programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from everynode.errors import UserError
from everynode.private_files import write_private_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from everynode.localkube.certificates import Certificates

ETCD = "etcd"
API_SERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLER_MANAGER = "kube-controller-manager"

ADMIN_USER = "admin"
# A range that machines rarely use. The first address is that of the service "kubernetes".
SERVICE_CIDR = "10.213.0.0/24"
# Where the API server connects to for logs and exec. Simulated nodes have no address of this type:
# theirs are invented, and may be those of machines in the network.
KUBELET_ADDRESS = "ExternalIP"
# Users and their groups. The scheduler has its built-in role; the controllers share one user here,
# for which there is no built-in role.
_GROUPS = {
    ADMIN_USER: "system:masters",
    "system:kube-scheduler": "",
    "system:kube-controller-manager": "system:masters",
}

# Sockets, relative to the folder all programs run in: the path of a socket may have no more than
# 107 bytes. etcd wants the form host:port and makes it the name of the file.
ETCD_SOCKETS = ("etcd-clients:1", "etcd-peers:1")
_ETCD_URL, _ETCD_PEER_URL = (f"unix://{name}" for name in ETCD_SOCKETS)
_ETCD_QUOTA = 8 << 30
# Clients on the same machine need no rate limit.
_UNLIMITED = ("--kube-api-qps=1000", "--kube-api-burst=2000")


@dataclass(frozen=True)
class ControlPlaneLayout:
    """Folder, certificates, ports and tokens of a control plane."""

    folder: Path
    certificates: Certificates
    ports: Mapping[str, int]
    tokens: Mapping[str, str]

    def url(self, name: str) -> str:
        """The address at which a component serves."""
        return f"https://127.0.0.1:{self.ports[name]}"

    def kubeconfig(self, user: str) -> Path:
        """Write the kubeconfig of a user and return its path."""
        path = self.folder / ("kubeconfig" if user == ADMIN_USER else f"{user}.kubeconfig")
        text = kubeconfig_text(self.url(API_SERVER), self.certificates.ca_file, self.tokens[user])
        write_private_file(path, text.encode())
        return path


def kubeconfig_text(url: str, ca_file: Path, token: str) -> str:
    """A kubeconfig with one cluster, one user and one context, all named everynode."""
    name = "everynode"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": url, "certificate-authority": str(ca_file)}}
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        sort_keys=False,
    )


def load_or_create_tokens(path: Path, new_token: Callable[[], str]) -> dict[str, str]:
    """The token of each user: from the token file of an earlier run, or new and written to it."""
    if path.exists():
        rows = [
            line.split(",") for line in path.read_bytes().decode("utf-8", "replace").splitlines()
        ]
        known = {row[1]: row[0] for row in rows if len(row) > 1}
        if not _GROUPS.keys() <= known.keys():
            raise UserError(
                f"{path} is damaged: it lacks tokens; remove it, and the next start creates it"
            )
        return known
    tokens = {user: new_token() for user in _GROUPS}
    text = "".join(f'{token},{user},{user},"{_GROUPS[user]}"\n' for user, token in tokens.items())
    write_private_file(path, text.encode())
    return tokens


def etcd_flags(layout: ControlPlaneLayout) -> list[str]:
    """Flags of etcd: one member on socket files, without fsync."""
    return [
        "--name=everynode",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={_ETCD_URL}",
        f"--advertise-client-urls={_ETCD_URL}",
        f"--listen-peer-urls={_ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={_ETCD_PEER_URL}",
        f"--initial-cluster=everynode={_ETCD_PEER_URL}",
        f"--quota-backend-bytes={_ETCD_QUOTA}",
        "--unsafe-no-fsync",
    ]


def api_server_flags(layout: ControlPlaneLayout, *, service_accounts: bool) -> list[str]:
    """Flags of the API server: token and certificate users, RBAC, on loopback only."""
    keys = layout.certificates
    flags = [
        f"--etcd-servers={_ETCD_URL}",
        *_serving_flags(layout, API_SERVER),
        "--advertise-address=127.0.0.1",
        # Endpoints may not be loopback addresses, and this server has no other.
        "--endpoint-reconciler-type=none",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={layout.folder / 'keys' / 'tokens.csv'}",
        f"--client-ca-file={keys.ca_file}",
        # Without a CA for front proxies the scheduler and the controllers log errors all the time.
        f"--requestheader-client-ca-file={keys.ca_file}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        # For `kubectl logs` and `exec`.
        f"--kubelet-client-certificate={keys.kubelet_client_file}",
        f"--kubelet-client-key={keys.kubelet_client_key_file}",
        f"--kubelet-certificate-authority={keys.ca_file}",
        f"--kubelet-preferred-address-types={KUBELET_ADDRESS}",
        f"--service-account-key-file={keys.account_key_file}",
        f"--service-account-signing-key-file={keys.account_key_file}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--allow-privileged=true",
    ]
    if not service_accounts:
        flags.append("--disable-admission-plugins=ServiceAccount")
    return flags


def scheduler_flags(layout: ControlPlaneLayout) -> list[str]:
    """Flags of the scheduler, without leader election."""
    return [*_serving_flags(layout, SCHEDULER), *_client_flags(layout, SCHEDULER)]


def controller_manager_flags(layout: ControlPlaneLayout, controllers: str) -> list[str]:
    """Flags of the controller manager, without leader election."""
    keys = layout.certificates
    return [
        *_serving_flags(layout, CONTROLLER_MANAGER),
        *_client_flags(layout, CONTROLLER_MANAGER),
        f"--controllers={controllers}",
        f"--service-account-private-key-file={keys.account_key_file}",
        f"--root-ca-file={keys.ca_file}",
        f"--cluster-signing-cert-file={keys.ca_file}",
        f"--cluster-signing-key-file={keys.ca_key_file}",
    ]


def _serving_flags(layout: ControlPlaneLayout, name: str) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--tls-cert-file={layout.certificates.serving_file}",
        f"--tls-private-key-file={layout.certificates.serving_key_file}",
    ]


def _client_flags(layout: ControlPlaneLayout, name: str) -> list[str]:
    path = layout.kubeconfig(f"system:{name}")
    return [
        f"--kubeconfig={path}",
        f"--authentication-kubeconfig={path}",
        f"--authorization-kubeconfig={path}",
        "--leader-elect=false",
        *_UNLIMITED,
    ]
