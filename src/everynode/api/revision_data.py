"""ControllerRevision data: a pod template encoded byte for byte as Go programs encode it.

`kubectl rollout undo`, OpenKruise and the conformance tests compare these bytes with
those that their own types are encoded to: keys sorted, HTML escaped, quantities in canonical form,
and some fields always present because Go cannot omit them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from everynode.api.daemonset import Flavour
from everynode.api.defaults import write_quantity
from everynode.api.types import POD_TEMPLATE, QUANTITY, FieldInfo, load

Object = dict[str, Any]

_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


class _Spec(msgspec.Struct, frozen=True):
    template: Object


class _Data(msgspec.Struct, frozen=True):
    spec: _Spec


def encode_revision_data(template: bytes, flavour: Flavour) -> bytes:
    """Return the `data` of a revision: a patch that replaces the template by this one."""
    shaped: Object = msgspec.json.decode(template, type=dict[str, Any])
    if flavour is Flavour.ADVANCED:
        # A native template was encoded by Go already; this one is stored as the user wrote it.
        shaped = _shape_object(shaped, POD_TEMPLATE)
        _stamp(shaped)
    _fill_in(shaped, stamps=flavour is Flavour.ADVANCED)
    return go_json({"spec": {"template": {**shaped, "$patch": "replace"}}})


def decode_revision_data(data: bytes) -> bytes:
    """Return the template in a revision's `data`; raises ValueError where there is none."""
    try:
        template = dict(msgspec.json.decode(data, type=_Data).spec.template)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    template.pop("$patch", None)
    return msgspec.json.encode(template)


def go_json(value: Any) -> bytes:
    """Encode JSON as Go encodes maps: keys sorted, HTML characters escaped."""
    text = msgspec.json.encode(value, order="deterministic")
    for plain, escaped in _ESCAPES:
        text = text.replace(plain, escaped)
    return text


# --- Fields that Go omits ----------------------------------------------------------------------


def _shape_object(value: Object, name: str) -> Object:
    fields = load()[name].fields
    shaped: Object = {}
    for key, item in value.items():
        field = fields.get(key)
        shaped_item = item if field is None else _shape(item, field)
        if shaped_item is None or (field is not None and _is_empty(shaped_item, field)):
            continue
        shaped[key] = shaped_item
    return shaped


def _shape(value: Any, field: FieldInfo) -> Any:
    if field.ref == QUANTITY:
        return write_quantity(value)
    if isinstance(value, dict):
        if field.values is not None:
            return {key: _shape(item, field.values) for key, item in value.items()}
        if field.ref and load()[field.ref].fields:
            return _shape_object(value, field.ref)
    if isinstance(value, list) and field.items is not None:
        return [_shape(item, field.items) for item in value]
    return value


def _is_empty(value: Any, field: FieldInfo) -> bool:
    """Whether Go omits the value: an empty list or map. An empty object has a meaning."""
    return value == [] or (value == {} and field.values is not None)


# --- Fields that Go cannot omit ----------------------------------------------------------------


def _fill_in(template: Object, *, stamps: bool) -> None:
    spec = template.get("spec")
    if not isinstance(spec, dict):
        return
    for container in _objects(spec, "initContainers", "containers"):
        if not isinstance(container.get("resources"), dict):
            container["resources"] = {}
        for variable in _objects(container, "env"):
            _fill_divisor(variable.get("valueFrom"))
        for name in ("livenessProbe", "readinessProbe", "startupProbe"):
            probe = container.get(name)
            if isinstance(probe, dict) and isinstance(probe.get("grpc"), dict):
                probe["grpc"].setdefault("service", None)
    for volume in _objects(spec, "volumes"):
        _fill_volume(volume, stamps=stamps)


def _fill_volume(volume: Object, *, stamps: bool) -> None:
    sources = [volume.get("downwardAPI")]
    projected = volume.get("projected")
    if isinstance(projected, dict):
        projected.setdefault("sources", None)
        sources += [source.get("downwardAPI") for source in _objects(projected, "sources")]
    for source in sources:
        if isinstance(source, dict):
            for item in _objects(source, "items"):
                _fill_divisor(item)
    ephemeral = volume.get("ephemeral")
    claim = ephemeral.get("volumeClaimTemplate") if isinstance(ephemeral, dict) else None
    if isinstance(claim, dict) and isinstance(claim.get("spec"), dict):
        claim["spec"].setdefault("resources", {})
        if stamps:
            _stamp(claim)


def _stamp(parent: Object) -> None:
    metadata = parent.get("metadata") or {}
    if isinstance(metadata, dict):
        parent["metadata"] = {"creationTimestamp": None, **metadata}


def _fill_divisor(source: object) -> None:
    field = source.get("resourceFieldRef") if isinstance(source, dict) else None
    if isinstance(field, dict):
        field.setdefault("divisor", "0")


def _objects(parent: Object, *names: str) -> Iterator[Object]:
    for name in names:
        items = parent.get(name)
        if isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))
