"""Server identity: a certificate authority, a serving certificate and a bearer token."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from everynode.apiserver.storage.sqlite import DataError
from everynode.clock import Clock
from everynode.private_files import make_private, write_private_file

IDENTITY_FILE: Final = "identity.json"
_VALID: Final = datetime.timedelta(days=3650)
_SKEW: Final = datetime.timedelta(hours=1)
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default.svc")
_ADDRESSES: Final = ("127.0.0.1", "::1")


class ServerIdentity(msgspec.Struct, frozen=True):
    """CA certificate, serving certificate, private key (PEM) and bearer token of one server."""

    authority: str
    certificate: str
    key: str
    token: str

    def ssl_context(self) -> ssl.SSLContext:
        """Return the TLS context of the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory() as folder:  # the ssl module reads only files
            path = Path(folder) / "server.pem"
            path.touch(mode=0o600)
            path.write_text(self.certificate + self.key)
            context.load_cert_chain(path)
        return context


def load_or_create_identity(folder: Path, clock: Clock) -> ServerIdentity:
    """Return the identity in a data folder; create it if there is none. Raises DataError.

    A half-written file is replaced. A complete file with unusable contents was edited by hand: it
    is left as it is and reported.
    """
    path = folder / IDENTITY_FILE
    make_private(folder)
    try:
        if path.exists():
            path.chmod(0o600)
        found = msgspec.json.decode(path.read_bytes(), type=ServerIdentity)
    except (FileNotFoundError, ValueError, RecursionError):
        identity = new_identity(clock)
    else:
        _require_usable(found, path)
        return found
    write_private_file(path, msgspec.json.encode(identity))
    return identity


def _require_usable(identity: ServerIdentity, path: Path) -> None:
    field = "certificate and key"
    try:
        identity.ssl_context()
        field = "authority"
        x509.load_pem_x509_certificate(identity.authority.encode())
    except (ValueError, OSError):  # ssl.SSLError is one
        raise DataError(
            f"{path}: {field} cannot be used, they are not PEM or do not belong together; "
            "remove the file, then a new one is made"
        ) from None
    token = identity.token
    if not token or not token.isascii() or not token.isprintable():
        raise DataError(
            f"{path}: token cannot be sent in a header; remove the file, then a new one is made"
        )


def new_identity(clock: Clock) -> ServerIdentity:
    """Return a new CA, a serving certificate for loopback, and a random token."""
    now = datetime.datetime.fromtimestamp(clock.now(), tz=datetime.UTC)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name, name = _common_name("everynode"), _common_name("everynode-api-server")
    authority = _certificate_builder(
        authority_name, authority_name, authority_key, now, authority=True
    )
    signed = authority.sign(authority_key, hashes.SHA256())
    certificate = _certificate_builder(name, authority_name, key, now, authority=False)
    certificate = certificate.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
        critical=False,
    )
    return ServerIdentity(
        authority=_pem(signed),
        certificate=_pem(certificate.sign(authority_key, hashes.SHA256())),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        token=(clock.uid() + clock.uid()).replace("-", ""),
    )


def _certificate_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    *,
    authority: bool,
) -> x509.CertificateBuilder:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(key_usage(authority=authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if authority:
        return builder
    return builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    ).add_extension(_subject_alternative_names(), critical=False)


def _subject_alternative_names() -> x509.SubjectAlternativeName:
    names = [x509.DNSName(name) for name in _NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    return x509.SubjectAlternativeName([*names, *addresses])


def key_usage(*, authority: bool) -> x509.KeyUsage:
    """Return the KeyUsage extension; a CA key may also sign certificates and CRLs."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
