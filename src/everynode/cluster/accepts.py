"""What a client wants to be answered with: an object, a table, or metadata alone."""

from __future__ import annotations

from collections.abc import Sequence


class Accept:
    """The media types of an Accept header, best first."""

    def __init__(self, header: str) -> None:
        self._wanted = [_parse(part) for part in header.split(",") if part.strip()]

    def wanted(self, kind: str, versions: Sequence[str]) -> str | None:
        """The version in which the client wants this kind before anything plain; None if not."""
        for media, parameters in self._wanted:
            if media not in ("application/json", "application/*", "*/*"):
                continue
            if "as" not in parameters:
                return None
            if parameters["as"] == kind and parameters.get("v") in versions:
                return parameters["v"]
        return None

    @property
    def json(self) -> bool:
        """Whether JSON will do."""
        accepted = ("application/json", "application/*", "*/*")
        return not self._wanted or any(media in accepted for media, _ in self._wanted)


def _parse(part: str) -> tuple[str, dict[str, str]]:
    media, *parameters = (piece.strip() for piece in part.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media, {name: value for name, _, value in pairs}
