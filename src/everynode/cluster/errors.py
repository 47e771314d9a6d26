"""How the server refuses: every failure as a Kubernetes Status, worded as clients expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from everynode.api.daemonset import Fault
from everynode.kube.requests import Response

Object = dict[str, Any]

_INVALID: Final = "FieldValueInvalid"
# The words a fault begins with, and the machine-readable reason that goes with them.
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


class Named(Protocol):
    """What an error says of the resource it is about."""

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


class Refusal(Exception):
    """A request that is answered with a failure Status."""

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
        """The Status object that is sent."""
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
        """The whole answer."""
        headers = {"content-type": "application/json"}
        if self.details and "retryAfterSeconds" in self.details:
            headers["retry-after"] = str(self.details["retryAfterSeconds"])
        return Response(self.code, msgspec.json.encode(self.status()), headers)


def qualified(resource: Named) -> str:
    """The resource with its group, as messages name it."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Named, name: str, **more: Any) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    details.update(more)
    return details


def not_found(resource: Named, name: str) -> Refusal:
    """There is no such object."""
    message = f'{qualified(resource)} "{name}" not found'
    return Refusal(404, "NotFound", message, details=_details(resource, name))


def already_exists(resource: Named, name: str, *, deleting: bool = False) -> Refusal:
    """The name is taken."""
    prefix = "object is being deleted: " if deleting else ""
    message = f'{prefix}{qualified(resource)} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, details=_details(resource, name))


def no_free_name(resource: Named, base: str) -> Refusal:
    """No free name was found for a generateName."""
    message = (
        f'{qualified(resource)} "{base}" already exists, '
        "the server was not able to generate a unique name for the object"
    )
    details = _details(resource, base, retryAfterSeconds=1)
    return Refusal(409, "AlreadyExists", message, details=details)


def conflict(resource: Named, name: str, why: str) -> Refusal:
    """The object is not as the request takes it to be."""
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return Refusal(409, "Conflict", message, details=_details(resource, name))


def modified(resource: Named, name: str) -> Refusal:
    """The resourceVersion of a write is not the stored one."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(resource, name, why)


def bad_request(message: str) -> Refusal:
    """The request makes no sense."""
    return Refusal(400, "BadRequest", message)


def no_such_resource() -> Refusal:
    """There is nothing at this address."""
    message = "the server could not find the requested resource"
    return Refusal(404, "NotFound", message, details={})


def unauthorized() -> Refusal:
    """Whoever asks has not said who they are."""
    return Refusal(401, "Unauthorized", "Unauthorized")


def precondition_failed(resource: Named, name: str, why: str) -> Refusal:
    """The object is not the one a delete was meant for; the kind is named, not the resource."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: Object = {"name": name, "kind": resource.kind}
    if resource.group:
        details["group"] = resource.group
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return Refusal(409, "Conflict", message, details=details)


def forbidden(resource: Named, name: str, why: str, *, causes: Sequence[Object] = ()) -> Refusal:
    """The request is understood and not allowed."""
    shown = f'{qualified(resource)} "{name}"' if name else qualified(resource)
    more: Object = {"causes": list(causes)} if causes else {}
    details = _details(resource, name, **more)
    return Refusal(403, "Forbidden", f"{shown} is forbidden: {why}", details=details)


def method_not_allowed() -> Refusal:
    """The resource has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(accepted: Iterable[str]) -> Refusal:
    """The body is in a format that is not understood here."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return Refusal(415, "UnsupportedMediaType", message)


def expired(message: str, *, metadata: Object | None = None) -> Refusal:
    """The history that the request needs is no longer kept."""
    return Refusal(410, "Expired", message, metadata=metadata)


def too_large_version(asked: int, current: int) -> Refusal:
    """The request names a resourceVersion that is still to come."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details: Object = {"causes": [cause], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", message, details=details)


def timed_out() -> Refusal:
    """A write was not committed within the time its client gave it."""
    message = "Timeout: request did not complete within the allotted timeout"
    return Refusal(504, "Timeout", message, details={})


def too_many_requests(message: str, *, seconds: int, causes: Sequence[Object] = ()) -> Refusal:
    """Not now; later perhaps."""
    details: Object = {"retryAfterSeconds": seconds} if seconds else {}
    if causes:
        details["causes"] = list(causes)
    return Refusal(429, "TooManyRequests", message, details=details)


def internal(message: str) -> Refusal:
    """Something is wrong on our side."""
    details = {"causes": [{"message": message}]}
    return Refusal(500, "InternalError", f"Internal error occurred: {message}", details=details)


def invalid(resource: Named, name: str, faults: Sequence[Fault]) -> Refusal:
    """The object breaks the rules of its kind; every fault is named."""
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
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {shown}', details=details)


class _Options:
    """The name that errors about the options of a request carry."""

    group = "meta.k8s.io"

    def __init__(self, verb: str) -> None:
        self.kind = f"{verb}Options"
        self.plural = self.kind.lower()


def bad_option(verb: str, option: str, *messages: str) -> Refusal:
    """An option of a request makes no sense; the verb is Create, Update, Patch, Delete or List."""
    return invalid(_Options(verb), "", [Fault(option, message) for message in messages])


def _cause(fault: Fault) -> str:
    """The fault's own reason, or the one that its words stand for."""
    if fault.reason == _INVALID:
        for words, reason in _CAUSES:
            if fault.message.startswith(words):
                return reason
    return fault.reason
