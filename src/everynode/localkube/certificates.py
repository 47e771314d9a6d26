"""Certificates of a cluster on loopback: one CA and what it signs, and the account key.

All programs that serve share one serving certificate. The API server has a client certificate for
the kubelet, as kubeadm gives it one.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from everynode.apiserver.transport.certificates import key_usage
from everynode.private_files import write_private_file

if TYPE_CHECKING:
    from pathlib import Path

_VALID = datetime.timedelta(days=365)
_SKEW = datetime.timedelta(hours=1)
_HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
# Loopback, and the ClusterIP of the service "kubernetes": the first of the service range.
ADDRESSES = ("127.0.0.1", "10.213.0.1")


@dataclass(frozen=True)
class Certificates:
    """The files of one control plane."""

    ca_file: Path
    ca_key_file: Path
    serving_file: Path
    serving_key_file: Path
    kubelet_client_file: Path
    kubelet_client_key_file: Path
    account_key_file: Path

    @classmethod
    def in_folder(cls, folder: Path, now: float) -> Certificates:
        """Use the files of an earlier run, or create them."""
        files = cls(
            ca_file=folder / "ca.crt",
            ca_key_file=folder / "ca.key",
            serving_file=folder / "serving.crt",
            serving_key_file=folder / "serving.key",
            kubelet_client_file=folder / "apiserver-kubelet-client.crt",
            kubelet_client_key_file=folder / "apiserver-kubelet-client.key",
            account_key_file=folder / "service-accounts.key",
        )
        if not all(path.exists() for path in vars(files).values()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files._make(datetime.datetime.fromtimestamp(now, tz=datetime.UTC))
        return files

    def _make(self, now: datetime.datetime) -> None:
        ca_key = _new_key(self.ca_key_file)
        ca_name = _name("everynode-control-plane")
        ca = (
            _builder(ca_name, ca_name, ca_key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(key_usage(authority=True), critical=True)
            .sign(ca_key, hashes.SHA256())
        )
        self.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        hosts: list[x509.GeneralName] = [x509.DNSName(host) for host in _HOSTS]
        hosts += [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
        serving = (
            _leaf(ca, _name("localhost"), _new_key(self.serving_key_file), now)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self.serving_file.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
        client_name = _name("kube-apiserver-kubelet-client", group="system:masters")
        client = (
            _leaf(ca, client_name, _new_key(self.kubelet_client_key_file), now)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self.kubelet_client_file.write_bytes(client.public_bytes(serialization.Encoding.PEM))
        _new_key(self.account_key_file)


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    written = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    write_private_file(path, written)
    return key


def _name(common_name: str, group: str = "") -> x509.Name:
    """A subject; for API servers and kubelets its common name is the user."""
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _leaf(
    ca: x509.Certificate,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
) -> x509.CertificateBuilder:
    """A certificate that the CA is to sign."""
    authority = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority)
    return (
        _builder(subject, ca.subject, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(authority=False), critical=True)
        .add_extension(identifier, critical=False)
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )
