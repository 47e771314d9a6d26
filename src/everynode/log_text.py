"""Log text: makes text from outside safe to log, as one line without control characters."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Final

_MAX_CHARACTERS: Final = 300  # of one text


def clean(text: str) -> str:
    """Return a text with unprintable characters escaped, cut if it is long."""
    shown = text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _escape(c) for c in shown)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def describe(error: BaseException) -> str:
    """Return an exception and the place that raised it, in one line."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = f" ({PurePath(frames[0].filename).name}:{frames[0].lineno})" if frames else ""
    return f"{type(error).__name__}: {clean(str(error))}{where}"
