"""Protobuf decoding: request bodies of typed Go clients, decoded to the same value as their JSON.

A body is four magic bytes and an envelope (runtime.Unknown) with the kind and the message.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.api.times import TimeError, format_micro_time, format_time
from everynode.apiserver.request import protobuf_fields

Object = dict[str, Any]

MAGIC: Final = b"k8s\x00"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
DELETE_OPTIONS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FIELDS_V1: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"


class ProtobufError(ValueError):
    """The body is not protobuf of a known kind."""


def decode(body: bytes) -> Object:
    """Return the object in a protobuf body as its JSON would be, with apiVersion and kind.

    Zero values are kept as the client wrote them; field validation later drops those that JSON
    leaves out (`omitempty`). Raises ProtobufError.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("the body does not start with the marker of Kubernetes protobuf")
    version = kind = ""
    raw = b""
    for number, value in _fields(memoryview(body)[len(MAGIC) :]):
        if number == 1:
            names = {n: _text(v) for n, v in _fields(_bytes(value))}
            version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2:
            raw = bytes(_bytes(value))
        elif number in (3, 4) and _text(value) not in ("", MEDIA_TYPE):
            raise ProtobufError("the content of the envelope is encoded in an unknown way")
    content = _message(memoryview(raw), type_of(version, kind))
    return {"apiVersion": version, "kind": kind, **content}


def type_of(api_version: str, kind: str) -> str:
    """Return the type name for apiVersion and kind of an envelope; raises ProtobufError."""
    group, slash, version = api_version.rpartition("/")
    name = types.type_for(group if slash else "", version, kind)
    if kind == "DeleteOptions":
        name = DELETE_OPTIONS  # the same in every group
    if name is None or name not in protobuf_fields.load().messages:
        raise ProtobufError(
            f'no protobuf is understood for kind "{kind}" in version "{api_version}"; '
            "send application/json"
        )
    return name


# --- Wire format ---------------------------------------------------------------------------------


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield field number and value of a message; a value is a varint or the bytes it holds."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            length, at = _varint(data, at)
        elif wire_type in (1, 5):
            length = 8 if wire_type == 1 else 4
        else:
            raise ProtobufError(f"wire type {wire_type} is not used by Kubernetes")
        if at + length > len(data):
            raise ProtobufError("the body ends too early")
        yield number, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ProtobufError("the body ends too early")


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ProtobufError("a number where a message was expected")
    return value


def _text(value: int | memoryview) -> str:
    try:
        return bytes(_bytes(value)).decode()
    except UnicodeDecodeError:
        raise ProtobufError("a text that is not UTF-8") from None


def _int(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a message where a number was expected")
    # Negative numbers are encoded in two's complement.
    return value - (1 << 64) if value >= 1 << 63 else value


def _bool(value: int | memoryview) -> bool:
    return bool(_int(value))


def _double(value: int | memoryview) -> float:
    import struct

    try:
        return float(struct.unpack("<d", _bytes(value))[0])
    except struct.error:
        raise ProtobufError("a number that does not have eight bytes") from None


def _base64(value: int | memoryview) -> str:
    return base64.b64encode(_bytes(value)).decode()


# --- Messages ------------------------------------------------------------------------------------

_Reader = Callable[[int | memoryview], Any]
_FieldReader = tuple[str, str, _Reader]  # name, cardinality, reader


@cache
def _field_readers(name: str) -> dict[int, _FieldReader]:
    return {
        field.number: (field.name, field.cardinality, _reader(field.type))
        for field in protobuf_fields.load().messages[name]
    }


def _reader(name: str) -> _Reader:
    known = _SCALARS.get(name) or _SPECIAL.get(name)
    if known is not None:
        return known
    fields = [field.name for field in protobuf_fields.load().messages[name]]
    # Go's named list types are messages with the one field `items`, and plain lists in JSON.
    if fields == ["items"] and name not in types.load():
        return lambda value: _message(_bytes(value), name).get("items", [])
    return lambda value: _message(_bytes(value), name)


def _message(data: memoryview, name: str) -> Object:
    out: Object = {}
    rows = _field_readers(name)
    for number, value in _fields(data):
        row = rows.get(number)
        if row is None:
            continue
        key, cardinality, read = row
        if cardinality == "map":
            entry = dict(_fields(_bytes(value)))
            item = read(entry[2]) if 2 in entry else _zero(read)
            out.setdefault(key, {})[_text(entry.get(1, memoryview(b"")))] = item
        elif cardinality == "list":
            out.setdefault(key, []).append(read(value))
        elif not key:
            out.update(read(value))
        else:
            out[key] = read(value)
    return out


def _zero(read: _Reader) -> Any:
    return 0 if read is _int else False if read is _bool else read(memoryview(b""))


def _quantity(value: int | memoryview) -> str:
    fields = dict(_fields(_bytes(value)))
    return _text(fields[1]) if 1 in fields else "0"


def _int_or_string(value: int | memoryview) -> int | str:
    fields = dict(_fields(_bytes(value)))
    if _int(fields.get(1, 0)) == 1:
        return _text(fields.get(3, memoryview(b"")))
    number = _int(fields.get(2, 0))
    return number - (1 << 32) if number >= 1 << 31 else number


def _timestamp(value: int | memoryview) -> float | None:
    fields = dict(_fields(_bytes(value)))
    if not fields:
        return None  # a time that was never set
    return _int(fields.get(1, 0)) + _int(fields.get(2, 0)) / 1e9


def _format_timestamp(value: int | memoryview, form: Callable[[float], str]) -> str | None:
    moment = _timestamp(value)
    try:
        return None if moment is None else form(moment)
    except TimeError as error:
        raise ProtobufError(str(error)) from None


def _time(value: int | memoryview) -> str | None:
    return _format_timestamp(value, format_time)


def _micro_time(value: int | memoryview) -> str | None:
    return _format_timestamp(value, format_micro_time)


def _embedded_json(value: int | memoryview) -> Any:
    """Decode embedded JSON (RawExtension, FieldsV1); members keep their order."""
    text = bytes(_bytes(dict(_fields(_bytes(value))).get(1, memoryview(b""))))
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtobufError(f"embedded JSON: {error}") from None
    except RecursionError:
        raise ProtobufError("embedded JSON: it is nested too deeply") from None


_SCALARS: Final[dict[str, _Reader]] = {
    "string": _text,
    "int": _int,
    "bool": _bool,
    "double": _double,
    "bytes": _base64,
}
_SPECIAL: Final[dict[str, _Reader]] = {
    types.QUANTITY: _quantity,
    types.INT_OR_STRING: _int_or_string,
    types.TIME: _time,
    types.MICRO_TIME: _micro_time,
    _RAW_EXTENSION: _embedded_json,
    _FIELDS_V1: _embedded_json,
}
