"""Stored bodies: the JSON of stored objects, and replacing parts of it without decoding.

A stored body always has this layout, so that three parts can be found in its bytes:

    {"kind":...,"apiVersion":...,"metadata":{...,"resourceVersion":"7",...},...,"status":{...}}

- metadata comes after kind and apiVersion, which are validated names;
- resourceVersion comes in metadata before labels and annotations, which a user chooses freely;
- status is the last member.

Decoding and encoding a whole pod for each of its status updates would cost several times as much.
"""

from __future__ import annotations

from typing import Any, Final, NewType

import msgspec

Object = dict[str, Any]
StoredBody = NewType("StoredBody", bytes)  # bytes in this layout

_METADATA: Final = b'"metadata":'
_RESOURCE_VERSION: Final = b'"resourceVersion":"'
_METADATA_ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def encode_body(obj: Object) -> StoredBody:
    """Encode an object in the stored layout."""
    return StoredBody(msgspec.json.encode(in_kubernetes_order(obj)))


def in_kubernetes_order(obj: Object) -> Object:
    """Return the object with its members in the order in which Kubernetes writes them."""
    metadata = _in_order(obj["metadata"])
    first = {"kind": obj.get("kind"), "apiVersion": obj.get("apiVersion"), "metadata": metadata}
    result: Object = {**first, **obj, "metadata": metadata}
    if "status" in obj:
        result["status"] = result.pop("status")  # last
    return result


def as_stored_body(body: bytes) -> StoredBody:
    """Return bytes of the data folder as a stored body; raises ValueError."""
    if _RESOURCE_VERSION not in body:
        raise ValueError("it has no resourceVersion")
    return StoredBody(body)


def with_resource_version(body: StoredBody, version: int) -> StoredBody:
    """Return the body with another metadata.resourceVersion."""
    start = body.index(_RESOURCE_VERSION) + len(_RESOURCE_VERSION)
    return StoredBody(b"%b%d%b" % (body[:start], version, body[body.index(b'"', start) :]))


def with_metadata(body: StoredBody, metadata: Object, *, old_length: int) -> StoredBody:
    """Return the body with other metadata; the encoded old metadata is `old_length` bytes long."""
    start = body.index(_METADATA) + len(_METADATA)
    encoded = msgspec.json.encode(_in_order(metadata))
    return StoredBody(b"%b%b%b" % (body[:start], encoded, body[start + old_length :]))


def with_status(body: StoredBody, status: Object, *, old_length: int) -> StoredBody:
    """Return the body with another status; the encoded old status is `old_length` bytes long."""
    return StoredBody(b"%b%b}" % (body[: -old_length - 1], msgspec.json.encode(status)))


def _in_order(metadata: Object) -> Object:
    return {key: metadata[key] for key in _METADATA_ORDER if key in metadata}
