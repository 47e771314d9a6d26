"""Protobuf bodies of a real API server, read as the same objects that it shows as JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from everynode.apiserver.request.protobuf import (
    DELETE_OPTIONS,
    MAGIC,
    ProtobufError,
    decode,
    type_of,
)
from everynode.apiserver.schema import field_validation
from everynode.apiserver.schema.object_type import ObjectType
from tests.support.paths import ANSWERS as RECORDED

ANSWERS = json.loads((RECORDED / "protobufs.json").read_text())

Object = dict[str, Any]


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """A message as the protocol writes it."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += bytes([number << 3 | 2, len(value)]) + value
        else:
            out += bytes([number << 3, value])
    return out


def envelope(version: str, kind: str, content: bytes) -> bytes:
    names = message((1, version.encode()), (2, kind.encode()))
    return MAGIC + message((1, names), (2, content), (3, b""), (4, b""))


@pytest.mark.parametrize("answer", [a for a in ANSWERS if a["kind"] != "ControllerRevision"])
def test_objects_are_read_as_their_json(answer: Object) -> None:
    obj = decode(base64.b64decode(answer["protobuf"]))
    clean, problems = field_validation.convert_object(
        obj, ObjectType(type_of(obj["apiVersion"], obj["kind"]))
    )
    assert problems == []
    assert clean == answer["json"]


def test_the_data_of_a_revision_keeps_its_order() -> None:
    answer = next(a for a in ANSWERS if a["kind"] == "ControllerRevision")
    obj = decode(base64.b64decode(answer["protobuf"]))
    assert json.dumps(obj["data"]) == '{"z": 1, "a": {"c": [null, 1.5, "x"]}}'


def test_delete_options_are_read_in_every_group() -> None:
    preconditions = message((1, b"uid-1"), (2, b"77"))
    content = message((1, 0), (2, preconditions), (4, b"Orphan"), (5, b"All"))
    for version in ("v1", "policy/v1"):
        assert type_of(version, "DeleteOptions") == DELETE_OPTIONS
        assert decode(envelope(version, "DeleteOptions", content)) == {
            "apiVersion": version,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1", "resourceVersion": "77"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        }


def test_an_eviction_is_read() -> None:
    metadata = message((1, b"pod-1"), (3, b"default"))
    obj = decode(envelope("policy/v1", "Eviction", message((1, metadata))))
    assert obj["metadata"] == {"name": "pod-1", "namespace": "default"}


def test_unknown_fields_of_newer_clients_are_skipped() -> None:
    content = message((1, message((1, b"a"))), (15, b"new"))
    assert decode(envelope("v1", "ConfigMap", content))["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        MAGIC,
        envelope("v1", "Nonsense", b""),
        envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", b""),
        envelope("v1", "ConfigMap", b"\x0a\xff"),
        envelope("v1", "ConfigMap", b"\x08\x01"),
        envelope("v1", "ConfigMap", b"\x0b"),
        envelope("v1", "ConfigMap", message((1, message((1, b"\xff"))))),
        MAGIC + message((1, message((1, b"v1"), (2, b"Pod"))), (3, b"gzip")),
    ],
)
def test_what_is_no_protobuf_of_a_known_kind_is_refused(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode(body)


def field(number: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


@pytest.mark.parametrize("data", [b'"\xff"', b"[" * 5000, b"9" * 5000, b"{"])
def test_embedded_json_that_cannot_be_read_is_refused(data: bytes) -> None:
    kind = field(1, field(1, b"apps/v1") + field(2, b"ControllerRevision"))
    with pytest.raises(ProtobufError, match="embedded JSON"):
        decode(MAGIC + kind + field(2, field(2, field(1, data))))
