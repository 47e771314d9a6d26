"""When a client certificate expires."""

from __future__ import annotations


def expiry_of(certificate: bytes) -> float | None:
    """Return the end of a PEM certificate's life, in seconds; None where it cannot be told."""
    # Imported here because it is needed only when something went wrong already.
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
    except ValueError:
        return None
