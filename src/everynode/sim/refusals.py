"""How the server, or whoever stands before it, says no in a simulated world."""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.kube.requests import Response

_REASONS: Final = {
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_WORDS: Final = {
    "deny-pods": ('admission webhook "policy.example.com" denied the request: not today', ""),
    "quota": ("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1", ""),
    "namespace-ending": (
        "unable to create new content in namespace default because it is being terminated",
        "NamespaceTerminating",
    ),
}


def status_body(code: int, reason: str, message: str, details: object = None) -> bytes:
    """A Status as the server words refusals."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details or {},
        "code": code,
    }
    return msgspec.json.encode(status)


def refusal(code: int, message: str = "simulated", details: object = None) -> Response:
    """An answer that says no."""
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    return Response(code, status_body(code, _REASONS[code], message, details), headers)


def refused(code: int, why: str) -> Response:
    """An answer that says no, in the words of whoever refuses."""
    message, reason = _WORDS.get(why, ("simulated", ""))
    details = {"causes": [{"reason": reason, "message": message}]} if reason else None
    return refusal(code, message, details)
