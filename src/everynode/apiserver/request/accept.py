"""Accept header: in which representation (JSON, Table, PartialObjectMetadata) to answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

_JSON: Final = ("application/json", "*/*")


@lru_cache(maxsize=256)
def parse_accept(header: str) -> Accept:
    """Parse an Accept header; cached, as clients send the same few."""
    return Accept(header)


class Accept:
    """The media types of an Accept header, in the order of the header."""

    def __init__(self, header: str) -> None:
        self._header = header
        # False for the headers that plainly ask for JSON: a cheap test before parsing.
        self.may_want_other_than_json = header not in (
            "",
            "application/json",
            "*/*",
            "application/json, */*",
        )

    @cached_property
    def _wanted(self) -> list[tuple[str, dict[str, str]]]:
        return [_parse(part) for part in self._header.split(",") if part.strip()]

    @property
    def plain(self) -> bool:
        """Whether the client accepts plain JSON."""
        return not self._wanted or any(
            media in _JSON and "as" not in parameters for media, parameters in self._wanted
        )

    @property
    def json(self) -> bool:
        """Whether the client accepts JSON in any representation, also with an `as` parameter."""
        return any(media in _JSON for media, _ in self._wanted)

    def preferred_version(self, kind: str, versions: Sequence[str]) -> str | None:
        """Return the version of `as=kind` that the client prefers to plain JSON, or None."""
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
