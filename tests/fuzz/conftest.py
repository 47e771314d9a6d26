"""The two servers that are compared, as tests/agreement starts them."""

from __future__ import annotations

from tests.agreement.conftest import installed, ours, real

__all__ = ["installed", "ours", "real"]
