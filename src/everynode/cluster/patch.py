"""Patches of every kind but apply: what an object becomes, or why the patch is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.cluster import json_patch, strategic, strict
from everynode.cluster.bodies import media_of
from everynode.cluster.errors import Refusal
from everynode.cluster.gotext import quote, show
from everynode.cluster.mismatch import first_misfit
from everynode.cluster.syntax import SyntaxFault, duplicates, parse, parse_pairs, says_twice
from everynode.kube.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

Object = dict[str, Any]

MAX_OPERATIONS: Final = 10_000
_OPERATION_KEYS: Final = ("op", "path", "from", "value")
_A_MAP: Final = "map[string]interface {}"


class PatchError(Refusal):
    """A patch that is refused."""


def accepted(type_name: str | None) -> list[str]:
    """The media types that patches of a kind may have; custom kinds take no strategic ones."""
    known = [JSON_PATCH, MERGE_PATCH]
    if type_name is not None:
        known.append(STRATEGIC_PATCH)
    return [*known, APPLY_PATCH]


def patch_object(
    current: Object,
    body: bytes,
    *,
    content_type: str,
    type_name: str | None,
    schema: Mapping[str, Any] | None = None,
    validation: str = "Warn",
    whole: bool = False,
) -> tuple[Object, list[str]]:
    """The patched object as its kind has it, and the warnings to send along.

    `current` is not changed; a type name of None means a custom resource. Unknown and duplicate
    fields refuse the patch, warn or pass as `validation` (Strict, Warn, Ignore) says. That
    `current` is `whole` says that it is as its kind has it already: what the patch leaves alone is
    then left alone, as it always is with custom resources. Raises PatchError.
    """
    content = _content(body, content_type, type_name)
    problems = _patch_problems(body, content, content_type)
    patched = _patched(current, content, content_type, type_name)
    known = current if whole or type_name is None else None
    try:
        obj, unknown = strict.check(patched, type_name=type_name, schema=schema, known=known)
    except strict.DecodeError as error:
        text = str(error)
        if media_of(content_type) == STRATEGIC_PATCH and type_name is not None:
            text = first_misfit(patched, type_name) or text
        raise _invalid(content, patched, content_type, text) from None
    problems += unknown
    if problems and validation == "Strict":
        text = f"strict decoding error: {', '.join(problems)}"
        raise _invalid(content, patched, content_type, text)
    return obj, problems if validation == "Warn" else []


def _content(body: bytes, content_type: str, type_name: str | None) -> Any:
    """The decoded patch, of the sort its media type asks for."""
    media = media_of(content_type)
    types = accepted(type_name)
    if media not in types or media == APPLY_PATCH:
        raise unsupported(type_name)
    prefix = "" if media == STRATEGIC_PATCH else "error decoding patch: "
    try:
        content = parse(body)
    except SyntaxFault as error:
        raise PatchError(400, "BadRequest", f"{prefix}{error}") from None
    wanted, name = (list, "[]handlers.jsonPatchOp") if media == JSON_PATCH else (dict, _A_MAP)
    if content is None and media != STRATEGIC_PATCH:
        if media == JSON_PATCH:
            return []
        raise PatchError(400, "BadRequest", "Invalid JSON Patch")
    if content is None:
        return {}
    if not isinstance(content, wanted):
        why = f"json: cannot unmarshal {_sort(content)} into Go value of type {name}"
        raise PatchError(400, "BadRequest", prefix + why)
    if isinstance(content, list):
        _check_operations(content, prefix)
    return content


def _check_operations(operations: list[Any], prefix: str) -> None:
    for operation in operations:
        if not isinstance(operation, dict):
            why = f"json: cannot unmarshal {_sort(operation)} into Go value of type "
            raise PatchError(400, "BadRequest", f"{prefix}{why}handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"Request entity is too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )


def unsupported(type_name: str | None) -> PatchError:
    """A patch of a media type that is not taken here."""
    types = ", ".join(accepted(type_name))
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {types}"
    )
    return PatchError(415, "UnsupportedMediaType", message)


def _patched(current: Object, content: Any, content_type: str, type_name: str | None) -> Object:
    media = media_of(content_type)
    if media == JSON_PATCH:
        return _json_patched(current, content)
    if media == MERGE_PATCH:
        merged: Object = json_patch.merge_patch(current, content)
        return merged
    assert type_name is not None
    try:
        return strategic.merge(current, content, type_name)
    except strategic.FormatError as error:
        raise PatchError(400, "BadRequest", str(error)) from None
    except strategic.StrategicError as error:
        raise PatchError(500, "", str(error)) from None


def _json_patched(current: Object, operations: list[Any]) -> Object:
    # The real server keeps the reason to itself; so do we, for clients that compare the words.
    refused = PatchError(
        422, "Invalid", "the server rejected our request due to an error in our request", details={}
    )
    try:
        patched = json_patch.json_patch(current, operations)
    except json_patch.OperationError as error:
        raise refused from error
    if not isinstance(patched, dict):
        raise refused
    return patched


def _patch_problems(body: bytes, content: Any, content_type: str) -> list[str]:
    """What is said twice in the patch itself, and what its operations do not know."""
    twice = duplicates(parse_pairs(body)) if says_twice(body, content) else []
    problems = [f'duplicate field "{path}"' for path in twice]
    if media_of(content_type) != JSON_PATCH:
        return problems
    for index, operation in enumerate(content):
        unknown = [key for key in operation if key not in _OPERATION_KEYS]
        problems += [f'unknown field "[{index}].{key}"' for key in unknown]
    return [f"json patch {problem}" for problem in problems]


def _invalid(content: Any, patched: Object, content_type: str, why: str) -> PatchError:
    """A patch whose outcome is not an object of its kind."""
    strategic_one = media_of(content_type) == STRATEGIC_PATCH
    text = show(content) if strategic_one else msgspec.json.encode(patched).decode()
    message = f"Invalid value: {quote(text)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return PatchError(
        422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": [cause]}
    )


def _sort(value: Any) -> str:
    names: dict[type, str] = {str: "string", list: "array", dict: "object", bool: "bool"}
    return names.get(type(value), "number")
