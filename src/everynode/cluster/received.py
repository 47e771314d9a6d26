"""What came with a call: its object, its options, and how strictly they are to be read."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from everynode.cluster import bodies
from everynode.cluster.calls import Call
from everynode.cluster.errors import bad_option, bad_request
from everynode.cluster.structs import struct_for
from everynode.cluster.syntax import says_twice
from everynode.kube.requests import JSON

Object = dict[str, Any]

_SHOWN: Final = 30  # characters
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


class _Said(msgspec.Struct, rename={"api_version": "apiVersion"}):
    kind: str = ""
    api_version: str = ""


class Part:
    """A kind that is sent to a subresource."""

    def __init__(self, group: str, version: str, kind: str) -> None:
        self.group = group
        self.version = version
        self.kind = kind


def read_object(call: Call) -> Object:
    """The object of a POST or PUT, of the kind its address is for and in the shape it has."""
    if call.kind.custom:
        _check_named(call)
    quick = _quickly(call)
    if quick is not None:
        return quick
    obj, warnings = bodies.read_object(
        call.request.body,
        content_type=call.request.content_type,
        kind=call.kind,
        type_name=call.kind.type_name,
        schema=call.kind.schema,
        validation=field_validation(call),
    )
    call.warnings.extend(warnings)
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return obj


def _quickly(call: Call) -> Object | None:
    """The object, read in one go; None if there is anything to say about it.

    Members that come twice go unnoticed here, so this is not for whoever asked to be told.
    """
    kind = call.kind
    obj = _converted(call, kind.type_name) if kind.type_name is not None else None
    return obj if obj is not None and _is_of(obj, kind.kind, kind.api_version) else None


def _converted(call: Call, type_name: str) -> Object | None:
    """The body as a type has it, if it is JSON, and all right, and nobody wants to hear of it."""
    if "fieldValidation" in call.query or bodies.media_of(call.request.content_type) != JSON:
        return None
    decoder = _decoder(type_name)
    if decoder is None:
        return None
    try:
        obj: Object = msgspec.to_builtins(decoder.decode(call.request.body))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return None
    return obj


def _is_of(obj: Object, kind: str, api_version: str) -> bool:
    """Whether an object is what its place is for, which it need not say."""
    if obj.setdefault("kind", kind) != kind:
        return False
    return bool(obj.setdefault("apiVersion", api_version) == api_version)


@cache
def _decoder(type_name: str) -> msgspec.json.Decoder[msgspec.Struct] | None:
    struct = struct_for(type_name)
    return None if struct is None else msgspec.json.Decoder(struct)


def _check_named(call: Call) -> None:
    """Objects of custom kinds must say what they are; those of built-in ones need not."""
    try:
        said = msgspec.json.decode(call.request.body, type=_Said)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return  # read_object says better what is wrong
    for name, value in (("Kind", said.kind), ("apiVersion", said.api_version)):
        if not value:
            sent = call.request.body.decode(errors="replace")
            begun = sent if len(sent) <= _SHOWN else f"{sent[:_SHOWN]} ..."
            raise bad_request(
                f"the object provided is unrecognized (must be of type {call.kind.kind}): "
                f"Object '{name}' is missing in '{sent}' ({begun})"
            )
    if said.api_version != call.kind.api_version:
        raise bad_request(
            f"the API version in the data ({said.api_version}) does not match the expected API "
            f"version ({call.kind.api_version})"
        )


def read_part(call: Call, part: Part, type_name: str) -> Object:
    """An object of another kind than the address's own, as subresources take them."""
    quick = _converted(call, type_name)
    if quick is not None and not says_twice(call.request.body, quick):
        api_version = f"{part.group}/{part.version}" if part.group else part.version
        if _is_of(quick, part.kind, api_version):
            return quick
    obj, warnings = bodies.read_object(
        call.request.body,
        content_type=call.request.content_type,
        kind=part,
        type_name=type_name,
        validation=field_validation(call),
    )
    call.warnings.extend(warnings)
    return obj


def field_validation(call: Call) -> str:
    """What is to happen with unknown fields."""
    value = call.query.get("fieldValidation", "")
    if value not in _VALIDATIONS:
        shown = ", ".join(f'"{each}"' for each in _VALIDATIONS)
        message = f'Unsupported value: "{value}": supported values: {shown}'
        verb = {"POST": "Create", "PUT": "Update"}.get(call.request.method, "Patch")
        raise bad_option(verb, "fieldValidation", message)
    return value or "Warn"
