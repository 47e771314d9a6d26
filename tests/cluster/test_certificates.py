from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509

from everynode.cluster.certificates import FILE, identity_in, new_identity
from tests.cluster.asking import StillClock


def test_certificate_is_for_loopback_and_signed_by_the_authority() -> None:
    identity = new_identity(StillClock())
    authority = x509.load_pem_x509_certificate(identity.authority.encode())
    certificate = x509.load_pem_x509_certificate(identity.certificate.encode())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "127.0.0.1" in [str(ip) for ip in names.get_values_for_type(x509.IPAddress)]
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert isinstance(identity.context(), ssl.SSLContext)


def test_token_is_long() -> None:
    assert len(new_identity(StillClock()).token) == 64


def test_data_folder_keeps_the_identity_to_itself(tmp_path: Path) -> None:
    first = identity_in(tmp_path / "data", StillClock())
    assert identity_in(tmp_path / "data", StillClock()) == first
    assert (tmp_path / "data" / FILE).stat().st_mode & 0o777 == 0o600


def test_broken_identity_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    assert identity_in(tmp_path, StillClock()).token
