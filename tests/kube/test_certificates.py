from __future__ import annotations

from everynode.kube.certificates import expiry_of
from tests.kube.authority import END, Authority


def test_the_end_of_a_certificate_is_read() -> None:
    assert expiry_of(Authority().issue("ada").certificate) == END.timestamp()


def test_what_is_no_certificate_has_no_end() -> None:
    assert expiry_of(b"nonsense") is None
