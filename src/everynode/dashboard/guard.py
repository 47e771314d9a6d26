"""Guard: which requests are answered at all, by method, Host and Origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Refusal(Exception):
    """A request that is not served: a status, one sentence, and what to do."""

    def __init__(self, status: int, error: str, help: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.help = help


class Guard(msgspec.Struct, frozen=True):
    """The port that is served on loopback."""

    port: int

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host that are its own."""
        return frozenset(f"{host}:{self.port}" for host in _LOOPBACK)

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise Refusal for a request of another site.

        A browser sends to this address what any page asks for. A name that leads here by a trick of
        DNS shows in Host, another page in Origin and Sec-Fetch-Site.
        """
        host = headers.get("Host", "")
        if host not in self.hosts:
            raise Refusal(
                403, "the Host header names another server", f"open http://127.0.0.1:{self.port}/"
            )
        origin = headers.get("Origin")
        if origin is not None and origin not in {f"http://{each}" for each in self.hosts}:
            raise Refusal(403, "another page asked for this", "use the dashboard's own page")
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "another page asked for this", "use the dashboard's own page")
        if method not in ("GET", "HEAD"):
            raise Refusal(405, "this dashboard only shows", "use the commands that it names")
