"""Paths of the repository and of the recorded responses of real API servers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ANSWERS: Final = ROOT / "tests" / "apiserver" / "answers"
