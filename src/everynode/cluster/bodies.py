"""What was sent: bodies of requests, decoded and checked against where they were sent."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from everynode.cluster.calls import Call, decode_object
from everynode.cluster.errors import bad_request, unsupported_media_type

Object = dict[str, Any]

_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml")


def read_object(call: Call) -> Object:
    """The object of a POST or PUT, of the kind its address is for."""
    obj = read_body(call)
    check_kind(call, obj)
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
    elif not isinstance(meta, dict):
        raise bad_request(f"{call.kind.kind}: metadata must be an object")
    return obj


def read_body(call: Call) -> Object:
    """The body, whatever format it is in."""
    media = call.request.content_type.partition(";")[0].strip()
    if media in _JSON:
        return decode_json(call.request.body)
    if media in _YAML:
        return decode_yaml(call.request.body)
    raise unsupported_media_type(
        ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
    )


def decode_json(body: bytes) -> Object:
    """A JSON object."""
    try:
        return decode_object(body)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise bad_request(f"the object provided is not a JSON object: {error}") from None


def decode_yaml(body: bytes) -> Object:
    """A YAML object; the result is what JSON could also have said."""
    try:
        obj = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    if not isinstance(obj, dict):
        raise bad_request("error converting YAML to JSON: the document is not an object")
    return decode_object(msgspec.json.encode(obj))


def check_kind(call: Call, obj: Object) -> None:
    """Refuse an object of another kind; one that says nothing is of the kind of the address."""
    kind, api_version = call.kind.kind, call.kind.api_version
    sent = obj.setdefault("apiVersion", api_version)
    if obj.setdefault("kind", kind) != kind:
        raise bad_request(
            f'{obj["kind"]} in version "{str(sent).rpartition("/")[2]}" cannot be handled as a '
            f'{kind}: no kind "{obj["kind"]}" is served at this address'
        )
    if sent != api_version:
        raise bad_request(
            f"the API version in the data ({sent}) does not match the expected API version "
            f"({api_version})"
        )
