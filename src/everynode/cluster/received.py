"""What came with a call: its object, its options, and how strictly they are to be read."""

from __future__ import annotations

from typing import Any, Final

from everynode.cluster import bodies
from everynode.cluster.calls import Call
from everynode.cluster.errors import bad_option

Object = dict[str, Any]

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


class Part:
    """A kind that is sent to a subresource."""

    def __init__(self, group: str, version: str, kind: str) -> None:
        self.group = group
        self.version = version
        self.kind = kind


def read_object(call: Call) -> Object:
    """The object of a POST or PUT, of the kind its address is for and in the shape it has."""
    obj, warnings = bodies.read_object(
        call.request.body,
        content_type=call.request.content_type,
        kind=call.kind,
        type_name=call.kind.type_name,
        schema=call.kind.schema,
        validation=field_validation(call),
    )
    call.warnings.extend(warnings)
    obj.setdefault("metadata", {})
    return obj


def read_part(call: Call, part: Part, type_name: str) -> Object:
    """An object of another kind than the address's own, as subresources take them."""
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


def media_type(call: Call) -> str:
    """The type of the body, without its parameters."""
    return call.request.content_type.partition(";")[0].strip()
