"""What a client wants to be answered with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

_JSON: Final = ("application/json", "*/*")


@lru_cache(maxsize=256)
def accept_of(header: str) -> Accept:
    """What a header asks for; clients send the same few over and over."""
    return Accept(header)


class Accept:
    """The media types of an Accept header, best first."""

    def __init__(self, header: str) -> None:
        self._header = header
        # Whether anything but plain JSON may be wanted: the cheap question that comes first.
        self.special = header not in ("", "application/json", "*/*", "application/json, */*")

    @cached_property
    def _wanted(self) -> list[tuple[str, dict[str, str]]]:
        return [_parse(part) for part in self._header.split(",") if part.strip()]

    @property
    def plain(self) -> bool:
        """Whether plain JSON will do."""
        return not self._wanted or any(
            media in _JSON and "as" not in parameters for media, parameters in self._wanted
        )

    @property
    def json(self) -> bool:
        """Whether JSON will do, in whatever form."""
        return any(media in _JSON for media, _ in self._wanted)

    def wanted(self, kind: str, versions: Sequence[str]) -> str | None:
        """The version in which the client wants this kind before anything plain; None if not."""
        for media, parameters in self._wanted:
            if media not in _JSON:
                continue
            if "as" not in parameters:
                return None
            if parameters["as"] == kind and parameters.get("v") in versions:
                return parameters["v"]
        return None


def _parse(part: str) -> tuple[str, dict[str, str]]:
    media, *parameters = (piece.strip() for piece in part.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media, {name: value for name, _, value in pairs}
