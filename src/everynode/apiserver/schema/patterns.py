"""Regular expressions from clients, run by RE2: linear time in the text, for every pattern.

Kubernetes reads the patterns of schemas with Go's regexp package, which has RE2's syntax. Python's
own module has another dialect, and goes through exponentially many ways to match `^(a+)+$`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

# RE2's message, and that of Go's regexp package. The quoted part is the same.
_GO_MESSAGES: Final = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
# Go refuses what would match a single byte of a character; RE2 does not.
_SINGLE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*(\\C)?", re.DOTALL)
_CACHE_SIZE: Final = 128  # compiled patterns; one may take eight megabytes


class PatternError(ValueError):
    """A pattern that RE2 rejects; the message is that of Go's regexp package."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled",)

    def __init__(self, text: str) -> None:
        import re2  # late: most servers never see a pattern

        if _SINGLE_BYTE.match(text)[1]:  # type: ignore[index]
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        try:
            self._compiled: Any = re2.compile(text, options)
        except re2.error as error:
            raise PatternError(_go_message(error.args[0])) from None

    def matches(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None


@lru_cache(maxsize=_CACHE_SIZE)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern, cached; raises PatternError."""
    return Pattern(text)


def _go_message(message: bytes | str) -> str:
    text = message.decode(errors="replace") if isinstance(message, bytes) else message
    for start, words in _GO_MESSAGES.items():
        if text.startswith(start):
            about = text[len(start) :].removeprefix(": ")
            return f"error parsing regexp: {words}: `{about}`"
    words, _, about = text.partition(": ")
    return f"error parsing regexp: {words}: `{about}`"
