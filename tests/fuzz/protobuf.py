"""Writing objects as typed Go clients do, so that the bytes can be damaged afterwards."""

from __future__ import annotations

import base64
import struct
from typing import Any

from everynode.api import times, types
from everynode.apiserver.request import protobuf, protobuf_fields
from tests.fuzz.generate import Object
from tests.fuzz.values import encode

_RAW = ("io.k8s.apimachinery.pkg.runtime.RawExtension", "FieldsV1", ".JSON")


def encode_object(obj: Object, type_name: str) -> bytes:
    """The body of a request; what cannot be written is left out."""
    named = _field(1, 2, _string(obj.get("apiVersion"))) + _field(2, 2, _string(obj.get("kind")))
    content = _message({k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}, type_name)
    return protobuf.MAGIC + _field(1, 2, named) + _field(2, 2, content)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, cardinality: int, content: bytes) -> bytes:
    length = _varint(len(content)) if cardinality == 2 else b""
    return _varint(number << 3 | cardinality) + length + content


def _string(value: Any) -> bytes:
    return str(value or "").encode(errors="surrogatepass")


def _message(value: Any, name: str) -> bytes:
    if not isinstance(value, dict):
        return b""
    out = b""
    for field in protobuf_fields.load().messages.get(name, ()):
        held = value if not field.name else value.get(field.name)
        if held is None:
            continue
        if field.cardinality == "list":
            items = held if isinstance(held, list) else []
            out += b"".join(_one(field.number, item, field.type) for item in items)
        elif field.cardinality == "map":
            for key, item in held.items() if isinstance(held, dict) else ():
                entry = _field(1, 2, _string(key)) + _one(2, item, field.type)
                out += _field(field.number, 2, entry)
        else:
            out += _one(field.number, held, field.type)
    return out


def _one(number: int, value: Any, name: str) -> bytes:
    if name in ("int", "bool"):
        return _field(number, 0, _varint(int(value) if isinstance(value, int) else 0))
    if name == "double":
        return _field(number, 1, struct.pack("<d", float(value) if _small(value) else 0.0))
    if name == "string":
        return _field(number, 2, _string(value))
    if name == "bytes":
        try:
            return _field(number, 2, base64.b64decode(_string(value)))
        except ValueError:
            return _field(number, 2, _string(value))
    return _field(number, 2, _special(value, name))


def _small(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 64)


def _special(value: Any, name: str) -> bytes:
    if name == types.QUANTITY:
        return _field(1, 2, _string(value))
    if name == types.INT_OR_STRING:
        if isinstance(value, int):
            return _field(2, 0, _varint(value))
        return _field(1, 0, _varint(1)) + _field(3, 2, _string(value))
    if name in (types.TIME, types.MICRO_TIME):
        try:
            return _field(1, 0, _varint(int(times.parse_time(str(value)))))
        except ValueError:
            return _field(1, 0, _varint(1 << 62))
    if name.endswith(_RAW):
        return _field(1, 2, encode(value))
    return _message(value, name)
