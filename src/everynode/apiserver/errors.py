"""Status errors: every failure as a Kubernetes Status, in kube-apiserver's wording.

Clients compare reasons and tests compare texts, so both are the real server's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from everynode.api.daemonset import FieldError
from everynode.apiserver.schema.go_format import quote
from everynode.kube.requests import Response

Object = dict[str, Any]

_INVALID: Final = "FieldValueInvalid"
# How the message of a validation error begins -> the `reason` of its cause in Status.details.
_CAUSES: Final = (
    ("Required value", "FieldValueRequired"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Forbidden", "FieldValueForbidden"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Not found", "FieldValueNotFound"),
    ("Internal error", "InternalError"),
    ("Type invalid", "FieldValueTypeInvalid"),
)


class ResourceInfo(Protocol):
    """The resource that an error is about: what its message and details name."""

    @property
    def group(self) -> str:
        """The API group, empty for core kinds."""
        ...

    @property
    def kind(self) -> str:
        """The kind, as in `Pod`."""
        ...

    @property
    def plural(self) -> str:
        """The resource, as in `pods`."""
        ...


class StatusError(Exception):
    """A failed request; it is answered with a Status of `status: Failure`."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Object | None = None,
        metadata: Object | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    def status(self) -> Object:
        """Return the Status object that is sent."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body

    def response(self) -> Response:
        """Return the HTTP response."""
        headers = {"content-type": "application/json"}
        if self.details and "retryAfterSeconds" in self.details:
            headers["retry-after"] = str(self.details["retryAfterSeconds"])
        return Response(self.code, msgspec.json.encode(self.status()), headers)


def group_resource(resource: ResourceInfo) -> str:
    """Return `resource.group` as messages write it, e.g. `daemonsets.apps`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: ResourceInfo, name: str, **more: Any) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    details.update(more)
    return details


def not_found(resource: ResourceInfo, name: str) -> StatusError:
    """404: there is no object of that name."""
    message = f"{group_resource(resource)} {quote(name)} not found"
    return StatusError(404, "NotFound", message, details=_details(resource, name))


def already_exists(resource: ResourceInfo, name: str, *, deleting: bool = False) -> StatusError:
    """409: an object of that name exists."""
    prefix = "object is being deleted: " if deleting else ""
    message = f"{prefix}{group_resource(resource)} {quote(name)} already exists"
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name))


def generate_name_conflict(resource: ResourceInfo, base: str) -> StatusError:
    """409: every name tried for a generateName was taken."""
    message = (
        f'{group_resource(resource)} "{base}" already exists, '
        "the server was not able to generate a unique name for the object"
    )
    details = _details(resource, base, retryAfterSeconds=1)
    return StatusError(409, "AlreadyExists", message, details=details)


def conflict(resource: ResourceInfo, name: str, why: str) -> StatusError:
    """409: the stored object is not in the state that the request expects."""
    message = f"Operation cannot be fulfilled on {group_resource(resource)} {quote(name)}: {why}"
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def stale_resource_version(resource: ResourceInfo, name: str) -> StatusError:
    """409: the resourceVersion of a write is not the stored one."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(resource, name, why)


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(400, "BadRequest", message)


def unknown_resource() -> StatusError:
    """404: the path names no served resource."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, details={})


def unauthorized() -> StatusError:
    """401: the request carries no valid token."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def precondition_failed(resource: ResourceInfo, name: str, why: str) -> StatusError:
    """409: a precondition of a delete failed; the message names the kind, not the resource."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: Object = {"name": name, "kind": resource.kind}
    if resource.group:
        details["group"] = resource.group
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=details)


def forbidden(
    resource: ResourceInfo, name: str, why: str, *, causes: Sequence[Object] = ()
) -> StatusError:
    """403: the request is valid but not allowed."""
    shown = f"{group_resource(resource)} {quote(name)}" if name else group_resource(resource)
    more: Object = {"causes": list(causes)} if causes else {}
    details = _details(resource, name, **more)
    return StatusError(403, "Forbidden", f"{shown} is forbidden: {why}", details=details)


def method_not_allowed() -> StatusError:
    """405: the resource does not support the verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the Content-Type of the body is not supported."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str, *, metadata: Object | None = None) -> StatusError:
    """410: the resourceVersion or continue token is older than the change log."""
    return StatusError(410, "Expired", message, metadata=metadata)


def resource_version_too_large(requested: int, current: int) -> StatusError:
    """504: the resourceVersion of the request is higher than the server's current one."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details: Object = {"causes": [cause], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    return StatusError(504, "Timeout", message, details=details)


def timed_out() -> StatusError:
    """504: the write was not committed within the `timeout` of its query."""
    message = "Timeout: request did not complete within the allotted timeout"
    return StatusError(504, "Timeout", message, details={})


def too_many_requests(message: str, *, seconds: int, causes: Sequence[Object] = ()) -> StatusError:
    """429: the client should retry later, after `seconds` if not zero."""
    details: Object = {"retryAfterSeconds": seconds} if seconds else {}
    if causes:
        details["causes"] = list(causes)
    return StatusError(429, "TooManyRequests", message, details=details)


def internal_error(message: str) -> StatusError:
    """500: an unexpected error inside the server."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)


def invalid(resource: ResourceInfo, name: str, faults: Sequence[FieldError]) -> StatusError:
    """422: the object failed validation; every error is listed as a cause."""
    unique = list(dict.fromkeys(str(fault) for fault in faults))
    shown = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: Object = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    if resource.kind:
        details["kind"] = resource.kind
    details["causes"] = [
        {"reason": _cause(fault), "message": fault.message, "field": fault.path} for fault in faults
    ]
    return StatusError(422, "Invalid", f"{kind} {quote(name)} is invalid: {shown}", details=details)


class _Options:
    """The `meta.k8s.io` kind (CreateOptions, ListOptions, ...) that option errors name."""

    group = "meta.k8s.io"

    def __init__(self, verb: str) -> None:
        self.kind = f"{verb}Options"
        self.plural = self.kind.lower()


def invalid_option(verb: str, option: str, *messages: str) -> StatusError:
    """422: a query option is invalid; `verb` is Create, Update, Patch, Delete or List."""
    return invalid(_Options(verb), "", [FieldError(option, message) for message in messages])


def _cause(fault: FieldError) -> str:
    """Return the fault's own reason, or the one that the beginning of its message stands for."""
    if fault.reason == _INVALID:
        for words, reason in _CAUSES:
            if fault.message.startswith(words):
                return reason
    return fault.reason
