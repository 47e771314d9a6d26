"""The flags, tokens and kubeconfigs that make four programs one control plane on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from everynode.cli.kubernetes.certificates import Certificates

ETCD = "etcd"
API_SERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLER_MANAGER = "kube-controller-manager"

ADMIN_USER = "admin"
# Addresses that a machine hardly has for itself: the first is that of the service "kubernetes".
SERVICES = "10.213.0.0/24"
# Who may do what: the scheduler has the rights that Kubernetes gives it; the controllers share one
# identity here, which no built-in role fits.
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
# Clients on the same machine have no reason to hold back.
_UNLIMITED = ("--kube-api-qps=1000", "--kube-api-burst=2000")


@dataclass(frozen=True)
class Site:
    """Where a control plane lives."""

    folder: Path
    certificates: Certificates
    ports: Mapping[str, int]
    tokens: Mapping[str, str]

    def url(self, name: str) -> str:
        """The address at which a component serves."""
        return f"https://127.0.0.1:{self.ports[name]}"

    def kubeconfig(self, user: str) -> Path:
        """Write the kubeconfig of a user; its path."""
        path = self.folder / ("kubeconfig" if user == ADMIN_USER else f"{user}.kubeconfig")
        path.touch(mode=0o600)
        path.write_text(
            kubeconfig_text(self.url(API_SERVER), self.certificates.ca_file, self.tokens[user])
        )
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


def tokens_in(path: Path, fresh: Callable[[], str]) -> dict[str, str]:
    """Each user's token: from the token file of an earlier run, or fresh and written there."""
    if path.exists():
        rows = [line.split(",") for line in path.read_text().splitlines()]
        return {row[1]: row[0] for row in rows}
    tokens = {user: fresh() for user in _GROUPS}
    path.touch(mode=0o600)
    path.write_text(
        "".join(f'{token},{user},{user},"{_GROUPS[user]}"\n' for user, token in tokens.items())
    )
    return tokens


def etcd_flags(site: Site) -> list[str]:
    """One member without durability against a crash of the machine, on socket files."""
    return [
        "--name=everynode",
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={_ETCD_URL}",
        f"--advertise-client-urls={_ETCD_URL}",
        f"--listen-peer-urls={_ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={_ETCD_PEER_URL}",
        f"--initial-cluster=everynode={_ETCD_PEER_URL}",
        f"--quota-backend-bytes={_ETCD_QUOTA}",
        "--unsafe-no-fsync",
    ]


def api_server_flags(site: Site, *, service_accounts: bool) -> list[str]:
    """Token and certificate users, RBAC, nothing outside loopback."""
    keys = site.certificates
    flags = [
        f"--etcd-servers={_ETCD_URL}",
        *_serving(site, API_SERVER),
        "--advertise-address=127.0.0.1",
        # A service may not have a loopback address as endpoint, and ours has no other.
        "--endpoint-reconciler-type=none",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={site.folder / 'keys' / 'tokens.csv'}",
        f"--client-ca-file={keys.ca_file}",
        # Scheduler and controllers complain forever where there is no authority for front proxies.
        f"--requestheader-client-ca-file={keys.ca_file}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--service-account-key-file={keys.account_key_file}",
        f"--service-account-signing-key-file={keys.account_key_file}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICES}",
        "--allow-privileged=true",
    ]
    if not service_accounts:
        flags.append("--disable-admission-plugins=ServiceAccount")
    return flags


def scheduler_flags(site: Site) -> list[str]:
    """The scheduler, without leader election."""
    return [*_serving(site, SCHEDULER), *_client(site, SCHEDULER)]


def controller_manager_flags(site: Site, controllers: str) -> list[str]:
    """The controllers named, without leader election."""
    keys = site.certificates
    return [
        *_serving(site, CONTROLLER_MANAGER),
        *_client(site, CONTROLLER_MANAGER),
        f"--controllers={controllers}",
        f"--service-account-private-key-file={keys.account_key_file}",
        f"--root-ca-file={keys.ca_file}",
        f"--cluster-signing-cert-file={keys.ca_file}",
        f"--cluster-signing-key-file={keys.ca_key_file}",
    ]


def _serving(site: Site, name: str) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports[name]}",
        f"--tls-cert-file={site.certificates.serving_file}",
        f"--tls-private-key-file={site.certificates.serving_key_file}",
    ]


def _client(site: Site, name: str) -> list[str]:
    path = site.kubeconfig(f"system:{name}")
    return [
        f"--kubeconfig={path}",
        f"--authentication-kubeconfig={path}",
        f"--authorization-kubeconfig={path}",
        "--leader-elect=false",
        *_UNLIMITED,
    ]
