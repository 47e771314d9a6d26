"""Who the server is to its clients: its own authority, a certificate, and a token."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from everynode.clock import Clock

FILE: Final = "identity.json"
_VALID: Final = datetime.timedelta(days=3650)
_SKEW: Final = datetime.timedelta(hours=1)
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default.svc")
_ADDRESSES: Final = ("127.0.0.1", "::1")


class Identity(msgspec.Struct, frozen=True):
    """Everything a client must know and everything the server must prove, as PEM and text."""

    authority: str
    certificate: str
    key: str
    token: str

    def context(self) -> ssl.SSLContext:
        """The server's side of TLS."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory() as folder:  # the ssl module reads only files
            path = Path(folder) / "server.pem"
            path.touch(mode=0o600)
            path.write_text(self.certificate + self.key)
            made.load_cert_chain(path)
        return made


def identity_in(folder: Path, clock: Clock) -> Identity:
    """The identity that a data folder holds, made now if it holds none."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        made = new_identity(clock)
    except (msgspec.DecodeError, msgspec.ValidationError):
        made = new_identity(clock)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(made))
    part.replace(path)
    return made


def new_identity(clock: Clock) -> Identity:
    """A new authority, a certificate for loopback, and a token nobody can guess."""
    now = datetime.datetime.fromtimestamp(clock.now(), tz=datetime.UTC)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name, name = _name("everynode"), _name("everynode-api-server")
    authority = _certificate(authority_name, authority_name, authority_key, now, authority=True)
    signed = authority.sign(authority_key, hashes.SHA256())
    certificate = _certificate(name, authority_name, key, now, authority=False)
    certificate = certificate.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
        critical=False,
    )
    return Identity(
        authority=_pem(signed),
        certificate=_pem(certificate.sign(authority_key, hashes.SHA256())),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        token=(clock.uid() + clock.uid()).replace("-", ""),
    )


def _certificate(
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
    ).add_extension(_alternatives(), critical=False)


def _alternatives() -> x509.SubjectAlternativeName:
    names = [x509.DNSName(name) for name in _NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    return x509.SubjectAlternativeName([*names, *addresses])


def key_usage(*, authority: bool) -> x509.KeyUsage:
    """What a key may be used for: an authority signs certificates too."""
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


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
