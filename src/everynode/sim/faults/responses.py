"""Error responses of the simulated API server, its admission webhooks and quotas."""

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
    "refuse-image": (
        'admission webhook "policy.example.com" denied the request: this image is not allowed',
        "",
    ),
    "quota": ("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1", ""),
    "namespace-ending": (
        "unable to create new content in namespace default because it is being terminated",
        "NamespaceTerminating",
    ),
}


def status_body(code: int, reason: str, message: str, details: object = None) -> bytes:
    """A Status object for an error."""
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


def error_response(code: int, message: str = "simulated", details: object = None) -> Response:
    """An error response."""
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    return Response(code, status_body(code, _REASONS[code], message, details), headers)


def admission_error(code: int, why: str) -> Response:
    """An error response with the message of the webhook, quota or namespace that refuses."""
    message, reason = _WORDS.get(why, ("simulated", ""))
    details = {"causes": [{"reason": reason, "message": message}]} if reason else None
    return error_response(code, message, details)
