"""API errors: one tree of exceptions, classified by what the caller should do."""

from __future__ import annotations

from typing import Final

import msgspec

from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class KubeError(Exception):
    """The request failed.

    `message` is the server's own; `request_info` describes the request. `retry_after` is set where
    the server sent how long to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        request_info: RequestInfo | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.request_info = request_info or RequestInfo()
        self.retry_after = retry_after

    def __str__(self) -> str:
        return (
            f"cannot {self.request_info}: {self.message}"
            if self.request_info.verb
            else self.message
        )


class Conflict(KubeError):
    """The object has changed since it was read: read it again, decide again."""


class AlreadyExists(KubeError):
    """The name is taken: read the object that has it."""


class NotFound(KubeError):
    """The object is gone, or its namespace is."""


class NotServed(NotFound):
    """The server does not know this kind: its CRD is not installed (yet)."""


class Gone(KubeError):
    """The resource version or page token is too old: list again."""


class Invalid(KubeError):
    """The server will never accept this request as it is."""


class Forbidden(KubeError):
    """RBAC refused: an administrator has to grant a permission; retry slowly."""


class Denied(KubeError):
    """Admission refused the object: a policy, a webhook, or one of the reasons below."""


class NamespaceTerminating(Denied):
    """Nothing can be created in a namespace that is being deleted."""


class QuotaExceeded(Denied):
    """The namespace's quota is used up."""


class Unauthorized(KubeError):
    """The server does not know who we are: credentials are wrong or have expired."""


class TooManyRequests(KubeError):
    """The server limits our rate; `retry_after` is how long to wait."""


class Unavailable(KubeError):
    """The server was not reached, or could not serve; nothing has changed."""


class UnknownOutcome(KubeError):
    """A write may have happened or not: read the object live to find out."""


class RequestInfo(msgspec.Struct, frozen=True):
    """A request in RBAC's terms, for messages that people can act upon."""

    verb: str = ""
    resource: str = ""  # with group and subresource: daemonsets.apps/status
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f' {self.name}' if self.name else ''}{where}"


def describe(request: Request) -> RequestInfo:
    """Describe a request in RBAC's terms."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return RequestInfo(verb=_VERBS.get(request.method, "get"), resource=request.path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    resource = f"{rest[0]}.{group}" if group else rest[0]
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    return RequestInfo(verb=_verb(request, name), resource=resource, namespace=namespace, name=name)


def _verb(request: Request, name: str) -> str:
    if request.method in _VERBS:
        return _VERBS[request.method]
    if ("watch", "true") in request.query:
        return "watch"
    return "get" if name else "list"


# --- From a response to an error -----------------------------------------------------------------


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: tuple[_Cause, ...] = ()
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, frozen=True):
    kind: str = ""
    message: str = ""
    reason: str = ""
    details: _Details = _Details()
    code: int = 0


_status_decoder: Final = msgspec.json.Decoder(_Status)


def from_response(request: Request, response: Response) -> KubeError:
    """Return the error of a response that is not a success."""
    status = _decode_status(response.body)
    retry_after = _retry_after(response.headers.get("retry-after", ""), status)
    error_class = _error_class(request, response.status, status)
    request_info = describe(request)
    message = status.message or _first_line(response)
    if error_class is NotServed:
        message = f"the server does not know {request_info.resource}"
    return error_class(
        message, status=response.status, request_info=request_info, retry_after=retry_after
    )


def from_status(request: Request, body: bytes) -> KubeError:
    """Return the error of a Status that came as the ERROR event of a watch."""
    status = _decode_status(body)
    return from_response(request, Response(status.code or 500, body))


def from_transport(request: Request, error: TransportError) -> KubeError:
    """Return the error of a request that got no response."""
    unknown = error.sent and request.method in _VERBS
    return (UnknownOutcome if unknown else Unavailable)(str(error), request_info=describe(request))


def _error_class(request: Request, code: int, status: _Status) -> type[KubeError]:
    if code >= 500:
        return _classify_server_error(request, code, status)
    match code:
        case 401:
            return Unauthorized
        case 403:
            return _classify_forbidden(status)
        case 404:
            return NotFound if status.kind == "Status" and status.details.kind else NotServed
        case 409:
            return AlreadyExists if status.reason == "AlreadyExists" else Conflict
        case 410:
            return Gone
        case 422 if any(cause.field == "metadata.uid" for cause in status.details.causes):
            # The uid in a patch is a precondition; another object has taken the name.
            return Conflict
        case 429:
            return TooManyRequests
    return Denied if _is_from_webhook(status) else Invalid


def _classify_forbidden(status: _Status) -> type[KubeError]:
    if any(cause.reason == "NamespaceTerminating" for cause in status.details.causes):
        return NamespaceTerminating
    if "exceeded quota" in status.message:
        return QuotaExceeded
    # RBAC's message is: user "cannot" <verb> "resource"; other 403s come from admission.
    if "cannot " in status.message and " resource " in status.message:
        return Forbidden
    return Denied if " is forbidden: " in status.message or _is_from_webhook(status) else Forbidden


def _classify_server_error(request: Request, code: int, status: _Status) -> type[KubeError]:
    if request.method not in _VERBS:
        return Unavailable
    if "failed calling webhook" in status.message or _is_from_webhook(status):
        return Denied  # admission comes before storage: nothing was written
    if code == 503 and status.kind == "Status":
        return Unavailable  # from the API server itself, not from a proxy: nothing was written
    # 500 and 504 are also sent when etcd did not respond in time; it may have committed.
    return UnknownOutcome


def _is_from_webhook(status: _Status) -> bool:
    return status.message.startswith("admission webhook ")


def _decode_status(body: bytes) -> _Status:
    try:
        return _status_decoder.decode(body)
    except (ValueError, RecursionError):
        return _Status()


def _retry_after(header: str, status: _Status) -> float | None:
    if header.isascii() and header.isdigit() and len(header) <= 9:
        return float(header)
    return float(status.details.retry_after_seconds) or None


def _first_line(response: Response) -> str:
    text = response.body[:200].decode("utf-8", "replace").strip().splitlines()
    return f"HTTP {response.status}{f': {text[0]}' if text else ''}"
