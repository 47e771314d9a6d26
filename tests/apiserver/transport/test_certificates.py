from __future__ import annotations

import ssl
from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from everynode.apiserver.storage.sqlite import DataError
from everynode.apiserver.transport.certificates import (
    IDENTITY_FILE,
    load_or_create_identity,
    new_identity,
)
from tests.support.api_client import StillClock


def test_certificate_is_for_loopback_and_signed_by_the_authority() -> None:
    identity = new_identity(StillClock())
    authority = x509.load_pem_x509_certificate(identity.authority.encode())
    certificate = x509.load_pem_x509_certificate(identity.certificate.encode())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "127.0.0.1" in [str(ip) for ip in names.get_values_for_type(x509.IPAddress)]
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert isinstance(identity.ssl_context(), ssl.SSLContext)


def test_token_is_long() -> None:
    assert len(new_identity(StillClock()).token) == 64


def test_data_folder_keeps_the_identity_to_itself(tmp_path: Path) -> None:
    first = load_or_create_identity(tmp_path / "data", StillClock())
    assert load_or_create_identity(tmp_path / "data", StillClock()) == first
    assert (tmp_path / "data" / IDENTITY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"token":"\xff"}', b"[" * 200_000])
def test_broken_identity_is_made_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / IDENTITY_FILE).write_bytes(content)
    assert load_or_create_identity(tmp_path, StillClock()).token


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("certificate", "nonsense", "certificate and key cannot be used"),
        ("key", "-----BEGIN EC PRIVATE KEY-----\nx\n", "certificate and key cannot be used"),
        ("authority", "-----BEGIN CERTIFICATE-----\nx\n", "authority cannot be used"),
        ("token", "a\nb", "token cannot be sent"),
        ("token", "", "token cannot be sent"),
    ],
)
def test_an_identity_that_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, field: str, value: str, words: str
) -> None:
    changed = msgspec.structs.replace(new_identity(StillClock()), **{field: value})
    (tmp_path / IDENTITY_FILE).write_bytes(msgspec.json.encode(changed))
    with pytest.raises(
        DataError, match=f"{tmp_path / IDENTITY_FILE}: {words}.*remove the file"
    ) as caught:
        load_or_create_identity(tmp_path, StillClock())
    assert "\n" not in str(caught.value)


def test_a_link_laid_where_the_identity_is_written_first_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / IDENTITY_FILE).with_suffix(".part").symlink_to(victim)
    load_or_create_identity(tmp_path, StillClock())
    assert victim.read_text() == "mine"
