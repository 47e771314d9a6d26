from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.apiserver.storage.stored_body import (
    as_stored_body,
    encode_body,
    with_metadata,
    with_resource_version,
    with_status,
)

OBJECT: dict[str, Any] = {
    "status": {"phase": "Running"},
    "spec": {"x": '"resourceVersion":"1"'},
    "metadata": {
        "annotations": {"a": '"resourceVersion":"2"'},
        "resourceVersion": "7",
        "name": "p",
    },
    "apiVersion": "v1",
    "kind": "Pod",
}
BODY = encode_body(OBJECT)


def test_members_are_in_the_order_of_kubernetes() -> None:
    decoded = msgspec.json.decode(BODY)
    assert decoded == OBJECT
    assert list(decoded) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert list(decoded["metadata"]) == ["name", "resourceVersion", "annotations"]


def test_only_the_resource_version_of_the_object_is_replaced() -> None:
    assert as_stored_body(bytes(BODY)) == BODY
    changed = msgspec.json.decode(with_resource_version(BODY, 12))
    assert changed == {**OBJECT, "metadata": {**OBJECT["metadata"], "resourceVersion": "12"}}


def test_bytes_without_a_resource_version_are_no_stored_body() -> None:
    with pytest.raises(ValueError, match="no resourceVersion"):
        as_stored_body(b'{"kind":"Pod","metadata":{"name":"p"}}')


def test_metadata_alone_is_replaced() -> None:
    old = msgspec.json.encode(msgspec.json.decode(BODY)["metadata"])
    changed = with_metadata(BODY, {"resourceVersion": "7", "name": "q"}, old_length=len(old))
    assert changed == encode_body({**OBJECT, "metadata": {"name": "q", "resourceVersion": "7"}})


def test_status_alone_is_replaced() -> None:
    old = msgspec.json.encode(OBJECT["status"])
    changed = with_status(BODY, {"phase": "Failed"}, old_length=len(old))
    assert changed == encode_body({**OBJECT, "status": {"phase": "Failed"}})
