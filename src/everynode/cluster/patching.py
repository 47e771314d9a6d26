"""PATCH: what an object is to become, in each of the five ways of saying it."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.daemonset import Fault
from everynode.cluster.apply import apply
from everynode.cluster.bodies import media_of, read_applied
from everynode.cluster.calls import Call
from everynode.cluster.errors import Refusal, bad_option, bad_request
from everynode.cluster.gotext import quote
from everynode.cluster.patch import patch_object
from everynode.cluster.received import field_validation
from everynode.kube.requests import APPLY_PATCH

Object = dict[str, Any]

_LONGEST_MANAGER: Final = 128


def is_apply(call: Call) -> bool:
    """Whether the patch says what its sender wants to own."""
    return media_of(call.request.content_type) == APPLY_PATCH


def patched(call: Call, current: Object) -> Object:
    """The object as the patch wants it."""
    check_options(call)
    if is_apply(call):
        return applied(call, current)
    obj, warnings = patch_object(
        current,
        call.request.body,
        content_type=call.request.content_type,
        type_name=call.kind.type_name,
        schema=call.kind.schema,
        validation=field_validation(call),
        whole=True,
    )
    call.warnings.extend(warnings)
    _check_identity(call, obj)
    return obj


def _check_identity(call: Call, obj: Object) -> None:
    """A patch changes an object; it does not make another one of it."""
    kind, meta = call.kind, obj.get("metadata") or {}
    if (obj.get("kind"), obj.get("apiVersion")) != (kind.kind, kind.api_version):
        shown = f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"
        fault = Fault("patch", f'Invalid value: "{shown}": kind and apiVersion cannot be patched')
        raise Refusal(422, "Invalid", f' "" is invalid: {fault}', details={})
    if meta.get("name") != call.name:
        raise bad_request(
            f"the name of the object ({meta.get('name')}) does not match the name on the URL "
            f"({call.name})"
        )
    if call.namespace and meta.get("namespace", call.namespace) != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def applied(call: Call, current: Object | None) -> Object:
    """The object after a server-side apply."""
    validation = field_validation(call)
    sent, warnings = read_applied(call.request.body, validation=validation)
    call.warnings.extend(warnings)
    group_kind = (sent.get("apiVersion"), sent.get("kind"))
    if group_kind != (call.kind.api_version, call.kind.kind):
        raise bad_request(
            f"invalid object type: {_group_version(group_kind[0])}, Kind={group_kind[1] or ''}"
        )
    meta = sent.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if meta.setdefault("name", call.name) != call.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({call.name})"
        )
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return apply(
        current,
        sent,
        manager=call.query.get("fieldManager", ""),
        force=call.flag("force"),
        api_version=call.kind.api_version,
        type_name=call.kind.type_name,
        subresource=call.subresource,
        time=call.now,
        schema=call.kind.schema,
    )


def _group_version(api_version: object) -> str:
    text = str(api_version or "/")
    return text if "/" in text else f"/{text}"


def check_options(call: Call) -> None:
    """Refuse options that make no sense for this sort of patch."""
    manager = call.query.get("fieldManager", "")
    if is_apply(call):
        if not manager:
            raise bad_option("Patch", "fieldManager", "Required value: is required for apply patch")
    elif "force" in call.query:
        raise bad_option("Patch", "force", "Forbidden: may not be specified for non-apply patch")
    if not manager.isprintable():
        index = next(at for at, character in enumerate(manager) if not character.isprintable())
        what = f"invalid character U+{ord(manager[index]):04X} (at position {index})"
        raise bad_option("Patch", "fieldManager", f"Invalid value: {quote(manager)}: {what}")
    if len(manager) > _LONGEST_MANAGER:
        message = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        raise bad_option("Patch", "fieldManager", message)
