"""PATCH: the object that results from a JSON, merge, strategic merge or server-side apply patch."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.apiserver.apply.apply import apply
from everynode.apiserver.errors import StatusError, bad_request, invalid_option
from everynode.apiserver.patches.formats import patch_object
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.body import (
    field_validation_option,
    media_type_of,
    read_apply_patch,
)
from everynode.apiserver.schema.go_format import quote
from everynode.kube.requests import APPLY_PATCH

Object = dict[str, Any]

_MAX_MANAGER_CHARACTERS: Final = 128


def is_apply(request: ApiRequest) -> bool:
    """Whether the patch is a server-side apply."""
    return media_type_of(request.http.content_type) == APPLY_PATCH


def object_after_patch(request: ApiRequest, current: Object) -> Object:
    """Return the object that a patch of any format makes of `current`."""
    check_patch_options(request)
    if is_apply(request):
        return server_side_apply(request, current)
    obj, warnings = patch_object(
        current,
        request.http.body,
        request.kind.object_type,
        content_type=request.http.content_type,
        validation=field_validation_option(request),
        normalised=True,
    )
    request.warnings.extend(warnings)
    _check_identity(request, obj)
    return obj


def _check_identity(request: ApiRequest, obj: Object) -> None:
    """Require that a patch leaves kind, apiVersion, name and namespace as they are."""
    kind, meta = request.kind, obj.get("metadata") or {}
    if (obj.get("kind"), obj.get("apiVersion")) != (kind.kind, kind.api_version):
        shown = f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"
        fault = FieldError(
            "patch", f'Invalid value: "{shown}": kind and apiVersion cannot be patched'
        )
        raise StatusError(422, "Invalid", f' "" is invalid: {fault}', details={})
    if meta.get("name") != request.name:
        raise bad_request(
            f"the name of the object ({meta.get('name')}) does not match the name on the URL "
            f"({request.name})"
        )
    if request.namespace and meta.get("namespace", request.namespace) != request.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def server_side_apply(request: ApiRequest, current: Object | None) -> Object:
    """Return the object after a server-side apply; `current` is None if it creates the object."""
    validation = field_validation_option(request)
    sent, warnings = read_apply_patch(request.http.body, validation=validation)
    request.warnings.extend(warnings)
    group_kind = (sent.get("apiVersion"), sent.get("kind"))
    if group_kind != (request.kind.api_version, request.kind.kind):
        raise bad_request(
            f"invalid object type: {_group_version(group_kind[0])}, Kind={group_kind[1] or ''}"
        )
    meta = sent.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if meta.setdefault("name", request.name) != request.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({request.name})"
        )
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    force = request.flag("force")
    return apply(current, sent, request.kind.object_type, request.writer, force=force)


def _group_version(api_version: object) -> str:
    text = str(api_version or "/")
    return text if "/" in text else f"/{text}"


def check_patch_options(request: ApiRequest) -> None:
    """Validate the options `fieldManager` and `force` for this patch format."""
    manager = request.query.get("fieldManager", "")
    if is_apply(request):
        if not manager:
            raise invalid_option(
                "Patch", "fieldManager", "Required value: is required for apply patch"
            )
    elif "force" in request.query:
        raise invalid_option(
            "Patch", "force", "Forbidden: may not be specified for non-apply patch"
        )
    check_field_manager(request, "Patch")
    _ = request.dry_run  # refuses values other than All, before the patch is looked at


def check_field_manager(request: ApiRequest, verb: str) -> None:
    """Validate the option `fieldManager` of a Create, Update or Patch."""
    manager = request.query.get("fieldManager", "")
    if not manager.isprintable():
        index = next(at for at, character in enumerate(manager) if not character.isprintable())
        what = f"invalid character U+{ord(manager[index]):04X} (at position {index})"
        raise invalid_option(verb, "fieldManager", f"Invalid value: {quote(manager)}: {what}")
    if len(manager) > _MAX_MANAGER_CHARACTERS:
        message = f"Too long: may not be more than {_MAX_MANAGER_CHARACTERS} bytes"
        raise invalid_option(verb, "fieldManager", message)
