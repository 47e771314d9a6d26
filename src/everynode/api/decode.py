"""Decoding errors: names objects that cannot be decoded, and retries without nulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import msgspec

from everynode.api.json_parts import members
from everynode.api.nulls import drop_nulls

NAMELESS: Final = "without a readable name"
# Exceptions of msgspec's decoders. Bytes that are not UTF-8 and JSON that is nested too deep raise
# Python's own exceptions.
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class DecodeError(ValueError):
    """Bytes that do not decode to the expected object."""


def encode_without_nulls(body: bytes | msgspec.Raw) -> bytes:
    """Return the object without the nulls that Go clients may write for an empty list or map.

    The `data` of a revision keeps its nulls, because its bytes are compared.
    """
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    kept = {
        key: raw if key == "data" else drop_nulls(msgspec.json.decode(raw))
        for key, raw in parts.items()
    }
    return msgspec.json.encode(drop_nulls(kept))


class _Meta(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...


class _Stored(Protocol):
    @property
    def metadata(self) -> _Meta: ...


S = TypeVar("S", bound=_Stored)


def require_identity(decode: Callable[[bytes], S], *, uid: bool = True) -> Callable[[bytes], S]:
    """Return a decoder that raises DecodeError for an object that no request can be made about.

    Such an object has no name or no namespace or, with `uid`, no uid: without one, the objects it
    owns cannot be found.
    """

    def decode_identified(body: bytes) -> S:
        item = decode(body)
        meta = item.metadata
        if meta.name and meta.namespace and (meta.uid or not uid):
            return item
        raise DecodeError("an object without a readable name, namespace or uid")

    return decode_identified


def read_key_and_uid(body: bytes | msgspec.Raw) -> tuple[str, str]:
    """Return key and uid of an object that cannot be decoded; empty where they cannot be read."""
    try:
        metadata = members(members(bytes(body))[b"metadata"])
    except (ValueError, KeyError):
        return "", ""
    name, namespace, uid = (_text(metadata.get(each)) for each in (b"name", b"namespace", b"uid"))
    return (f"{namespace}/{name}" if namespace else name), uid


def _text(raw: bytes | None) -> str:
    if raw is None:
        return ""
    try:
        return str(msgspec.json.decode(raw, type=str | int))
    except DECODE_ERRORS:
        return ""
