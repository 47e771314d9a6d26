"""Patch requests other than apply: decode the patch, run it, check the result.

The formats are JSON patch, merge patch and strategic merge patch; apply patches are in `apply`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.apiserver.errors import StatusError
from everynode.apiserver.patches import json_patch, strategic
from everynode.apiserver.request.body import media_type_of
from everynode.apiserver.request.json_syntax import (
    JsonSyntaxError,
    duplicate_keys,
    may_have_duplicate_keys,
    parse_json,
    parse_pairs,
)
from everynode.apiserver.schema import field_validation
from everynode.apiserver.schema.go_format import format_value, quote
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.schema.type_errors import first_conversion_error
from everynode.kube.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

Object = dict[str, Any]

MAX_OPERATIONS: Final = 10_000
_OPERATION_KEYS: Final = ("op", "path", "from", "value")
_GO_MAP: Final = "map[string]interface {}"


class PatchError(StatusError):
    """A patch that the server answers with an error."""


def accepted_media_types(type_name: str | None) -> list[str]:
    """Return the media types that PATCH accepts; custom resources have no strategic merge patch."""
    known = [JSON_PATCH, MERGE_PATCH]
    if type_name is not None:
        known.append(STRATEGIC_PATCH)
    return [*known, APPLY_PATCH]


def patch_object(
    current: Object,
    body: bytes,
    object_type: ObjectType,
    *,
    content_type: str,
    validation: str = "Warn",
    normalised: bool = False,
) -> tuple[Object, list[str]]:
    """Return the patched object, converted to its type, and the warnings for the client.

    `current` is not changed. `validation` is the fieldValidation of the request: unknown and
    duplicate fields are an error (Strict), a warning (Warn) or dropped (Ignore). If `current` was
    converted to its type before (`normalised`), only what the patch changes is converted again, as
    with every custom resource. Raises PatchError.
    """
    type_name = object_type.name
    content = _decode_patch(body, content_type, type_name)
    problems = _patch_problems(body, content, content_type)
    patched = _apply_patch(current, content, content_type, type_name)
    known = current if normalised or type_name is None else None
    try:
        obj, unknown = field_validation.convert_object(patched, object_type, known=known)
    except field_validation.BodyTypeError as error:
        text = str(error)
        if media_type_of(content_type) == STRATEGIC_PATCH and type_name is not None:
            text = first_conversion_error(patched, type_name) or text
        raise _invalid_result(content, patched, content_type, text) from None
    problems += unknown
    if problems and validation == "Strict":
        text = f"strict decoding error: {', '.join(problems)}"
        raise _invalid_result(content, patched, content_type, text)
    return obj, problems if validation == "Warn" else []


def _decode_patch(body: bytes, content_type: str, type_name: str | None) -> Any:
    """Decode a patch: a list of operations for a JSON patch, an object for the others."""
    media = media_type_of(content_type)
    types = accepted_media_types(type_name)
    if media not in types or media == APPLY_PATCH:
        raise unsupported_media_type(type_name)
    prefix = "" if media == STRATEGIC_PATCH else "error decoding patch: "
    try:
        content = parse_json(body)
    except JsonSyntaxError:
        raise PatchError(400, "BadRequest", "invalid JSON patch") from None
    wanted, name = (list, "[]handlers.jsonPatchOp") if media == JSON_PATCH else (dict, _GO_MAP)
    if content is None and media != STRATEGIC_PATCH:
        if media == JSON_PATCH:
            return []
        raise PatchError(400, "BadRequest", "Invalid JSON Patch")
    if content is None:
        return {}
    if not isinstance(content, wanted):
        why = f"json: cannot unmarshal {_json_type(content)} into Go value of type {name}"
        raise PatchError(400, "BadRequest", prefix + why)
    if isinstance(content, list):
        _check_operations(content, prefix)
    return content


def _check_operations(operations: list[Any], prefix: str) -> None:
    for index, operation in enumerate(operations):
        if operation is None:
            operations[index] = operation = {}
        if not isinstance(operation, dict):
            why = f"json: cannot unmarshal {_json_type(operation)} into Go value of type "
            raise PatchError(400, "BadRequest", f"{prefix}{why}handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            if not isinstance(operation.get(key, ""), str | None):
                what = f"json: cannot unmarshal {_json_type(operation[key])} into Go struct field "
                where = f"jsonPatchOp.{key} of type string"
                raise PatchError(400, "BadRequest", f"{prefix}{what}{where}")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )


def unsupported_media_type(type_name: str | None) -> PatchError:
    """Return the error for a media type that PATCH does not accept."""
    types = ", ".join(accepted_media_types(type_name))
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {types}"
    )
    return PatchError(415, "UnsupportedMediaType", message)


def _apply_patch(current: Object, content: Any, content_type: str, type_name: str | None) -> Object:
    media = media_type_of(content_type)
    if media == JSON_PATCH:
        return _apply_json_patch(current, content)
    if media == MERGE_PATCH:
        merged: Object = json_patch.apply_merge_patch(current, content)
        return merged
    assert type_name is not None
    try:
        return strategic.merge(current, content, type_name)
    except strategic.FormatError as error:
        raise PatchError(400, "BadRequest", str(error)) from None
    except strategic.StrategicError as error:
        raise PatchError(500, "", str(error)) from None


def _apply_json_patch(current: Object, operations: list[Any]) -> Object:
    # kube-apiserver does not say which operation failed; some clients compare the message.
    refused = PatchError(
        422, "Invalid", "the server rejected our request due to an error in our request", details={}
    )
    try:
        patched = json_patch.apply_json_patch(current, operations)
    except json_patch.OperationError as error:
        raise refused from error
    if not isinstance(patched, dict):
        raise refused
    return patched


def _patch_problems(body: bytes, content: Any, content_type: str) -> list[str]:
    """Find duplicate fields in the patch itself, and unknown fields of JSON patch operations."""
    twice = duplicate_keys(parse_pairs(body)) if may_have_duplicate_keys(body, content) else []
    problems = [f'duplicate field "{path}"' for path in twice]
    if media_type_of(content_type) != JSON_PATCH:
        return problems
    for index, operation in enumerate(content):
        unknown = [key for key in operation if key not in _OPERATION_KEYS]
        problems += [f'unknown field "[{index}].{key}"' for key in unknown]
    return [f"json patch {problem}" for problem in problems]


def _invalid_result(content: Any, patched: Object, content_type: str, why: str) -> PatchError:
    """Return the error for a patch whose result is not an object of its type."""
    strategic_one = media_type_of(content_type) == STRATEGIC_PATCH
    text = format_value(content) if strategic_one else msgspec.json.encode(patched).decode()
    message = f"Invalid value: {quote(text)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return PatchError(
        422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": [cause]}
    )


def _json_type(value: Any) -> str:
    names: dict[type, str] = {str: "string", list: "array", dict: "object", bool: "bool"}
    return names.get(type(value), "number")
