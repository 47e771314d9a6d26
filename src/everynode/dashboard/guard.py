"""Guard: which requests are answered at all, by method, Host and Origin."""

from __future__ import annotations

import re
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
    "Server": "everynode",  # and not which library, in which version
}
_LOOPBACK: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):(\d{1,5})")


class Refusal(Exception):
    """A request that is not served: a status, one sentence, and what to do."""

    def __init__(self, status: int, error: str, help: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.help = help


class Guard(msgspec.Struct, frozen=True):
    """The port on loopback that a browser may name; None for any: `kubectl port-forward` chooses.

    `acts` says that some requests change something.
    """

    port: int | None
    acts: bool = False

    def check(self, method: str, headers: Mapping[str, str], path: str = "/api/") -> None:
        """Raise Refusal for a request of another site.

        A browser sends to this address what any page asks for. A name that leads here by a trick of
        DNS shows in Host, another page in Origin and Sec-Fetch-Site. A link of another page may
        open this one in a tab: that answer holds nothing of the cluster.
        """
        host = headers.get("Host", "")
        found = _LOOPBACK.fullmatch(host)
        if found is None or (self.port is not None and int(found[1]) != self.port):
            where = "127.0.0.1 and the port that was forwarded"
            if self.port is not None:
                where = f"http://127.0.0.1:{self.port}/"
            raise Refusal(403, "the Host header names another server", f"open {where}")
        origin = headers.get("Origin", f"http://{host}")
        site = headers.get("Sec-Fetch-Site", "none")
        own = origin == f"http://{host}"
        if not own or (site not in ("none", "same-origin") and not _is_link(path, headers)):
            raise Refusal(403, "another page asked for this", "use the dashboard's own page")
        if method not in ("GET", "HEAD", *(["POST"] if self.acts else [])):
            raise Refusal(405, "this dashboard only shows", "use the commands that it names")


def _is_link(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser opens the page in a tab, as by a link that was shared."""
    how = (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest"))
    return path == "/" and how == ("navigate", "document")
