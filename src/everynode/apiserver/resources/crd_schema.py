"""Validation of the OpenAPI schema of a CustomResourceDefinition, with kube-apiserver's messages.

A schema must be structural: every field has a type outside `allOf`, `anyOf`, `oneOf` and `not`,
which only restrict values. CEL rules are not compiled here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import (
    forbidden,
    invalid,
    json_type,
    required,
    unsupported,
)
from everynode.apiserver.schema.openapi_validation import validate
from everynode.apiserver.schema.patterns import PatternError, compile_pattern
from everynode.apiserver.schema.type_errors import first_type_error

Schema = Mapping[str, Any]
Faults = Iterator[FieldError]

SCHEMA_TYPE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META: Final = ("metadata", "kind", "apiVersion")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties", "definitions")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING_MARK: Final = "x-kubernetes-int-or-string"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
# Keywords of a field's type, which are forbidden where values are only restricted.
_TYPE_KEYWORDS: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (_PRESERVE, "must be false to be structural"),
    (_EMBEDDED, "must be false to be structural"),
    (_INT_OR_STRING_MARK, "must be false to be structural"),
    (_KEYS, "must be empty to be structural"),
    (_LIST_TYPE, "must be undefined to be structural"),
    (_MAP_TYPE, "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_FORBIDDEN_IF_PRESENT: Final = frozenset({"additionalProperties", "default", _LIST_TYPE, _MAP_TYPE})
_UNSUPPORTED: Final = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_MISSING_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


class SchemaTypeError(ValueError):
    """A schema that cannot be decoded: one of its values has the wrong type."""


def normalise_schema(schema: Any, path: str = "spec.versions.schema.openAPIV3Schema") -> Any:
    """Return the schema as kube-apiserver decodes it: null is {}; raises SchemaTypeError.

    The table of types does not describe what is below `items` and `additionalProperties`, which
    may have several types: that is decoded here.
    """
    normalised = dict(schema or {})
    for key in _MAPS:
        if isinstance(normalised.get(key), dict):
            below = normalised[key].items()
            normalised[key] = {
                name: normalise_schema(each, f"{path}.{key}") for name, each in below
            }
    for key in _LISTS:
        if isinstance(normalised.get(key), list):
            normalised[key] = [normalise_schema(each, f"{path}.{key}") for each in normalised[key]]
    if normalised.get("not") is not None:
        normalised["not"] = normalise_schema(normalised["not"], f"{path}.not")
    items = normalised.get("items")
    if isinstance(items, dict):
        normalised["items"] = _read_schema(items, f"{path}.items")
    elif isinstance(items, list):
        normalised["items"] = [_read_schema(item, f"{path}.items") for item in items]
    else:
        normalised.pop("items", None)
    for key in ("additionalProperties", "additionalItems"):
        extra = normalised.get(key)
        if isinstance(extra, dict):
            normalised[key] = _read_schema(extra, f"{path}.{key}")
        elif extra is None:
            normalised.pop(key, None)
        elif not isinstance(extra, bool):
            raise SchemaTypeError("boolean or JSON schema expected")
    return normalised


def _read_schema(schema: Any, path: str) -> Any:
    if not isinstance(schema, dict | None):
        why = f"json: cannot unmarshal {json_type(schema)} into Go struct field"
        raise SchemaTypeError(f"{why} JSONSchemaProps.{path} of type v1.JSONSchemaProps")
    fault = first_type_error(schema or {}, SCHEMA_TYPE)
    if fault is not None:
        raise SchemaTypeError(fault.replace("JSONSchemaProps.", f"JSONSchemaProps.{path}.", 1))
    return normalise_schema(schema, path)


def schema_faults(schema: Schema, path: str) -> list[FieldError]:
    """Return every fault of a schema."""
    faults: list[FieldError] = []
    if schema.get("nullable"):
        faults.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    unread = list(_unsupported_parts(schema))
    if not unread:
        structural = [
            *_structural_faults(schema, path, "root"),
            *_completeness_faults(schema, schema, path, path),
        ]
        structural.sort(key=str)
        faults += structural or _default_faults(schema, path, top=True)
    faults += _general_faults(schema, path, root=True, no_default="")
    if unread and not faults:
        faults.append(invalid(path, "", unread[0]))
    return faults


def _unsupported_parts(schema: Schema) -> Iterator[str]:
    """Yield why a schema cannot be structural at all."""
    for key in ("$schema", *_UNSUPPORTED):
        if schema.get(key):
            name = "schema" if key == "$schema" else key
            yield f"OpenAPIV3Schema '{name}' is not supported"
    if isinstance(schema.get("items"), list):
        yield "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for _, below in _children(schema, ""):
        yield from _unsupported_parts(below)


def _children(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield every schema directly below one, with its path."""
    for name, below in sorted((schema.get("properties") or {}).items()):
        yield f"{path}.properties[{name}]", below
    for key in ("additionalProperties", "items", "not"):
        if isinstance(schema.get(key), dict):
            yield f"{path}.{key}", schema[key]
    for key in _LISTS:
        for index, below in enumerate(schema.get(key) or ()):
            yield f"{path}.{key}[{index}]", below


# --- Structure ----------------------------------------------------------------------------------


def _structural_faults(schema: Schema, path: str, level: str) -> Faults:
    kind, items, extra = (schema.get(key) for key in ("type", "items", "additionalProperties"))
    if kind == "array" and not isinstance(items, dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _structural_faults(items, f"{path}.items", "item")
    properties = schema.get("properties") or {}
    for name, below in properties.items():
        yield from _structural_faults(below, f"{path}.properties[{name}]", "field")
    if extra is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(extra, dict):
        yield from _structural_faults(extra, f"{path}.additionalProperties", "field")
    if schema.get(_INT_OR_STRING_MARK):
        for key in (_PRESERVE, _EMBEDDED):
            if schema.get(key):
                yield invalid(
                    f"{path}.{key}", True, f"must be false if {_INT_OR_STRING_MARK} is true"
                )
    yield from _restriction_faults(schema, path, _int_or_string_list(schema))
    yield from _structural_type_faults(schema, path, level)
    if level == "root" or schema.get(_EMBEDDED):
        yield from _common_member_faults(properties, path, root=level == "root")


def _structural_type_faults(schema: Schema, path: str, level: str) -> Faults:
    kind, embedded = schema.get("type", ""), schema.get(_EMBEDDED)
    if embedded and kind != "object":
        why = f"must be object if {_EMBEDDED} is true"
        yield required(f"{path}.type", why) if not kind else invalid(f"{path}.type", kind, why)
    elif not kind and not schema.get(_INT_OR_STRING_MARK) and not schema.get(_PRESERVE):
        yield required(f"{path}.type", _MISSING_TYPE[level])
    if embedded and schema.get("additionalProperties") is not None:
        why = f"must not be used if {_EMBEDDED} is set"
        yield forbidden(f"{path}.additionalProperties", why)
    if embedded and not schema.get(_PRESERVE) and not schema.get("properties"):
        why = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield required(f"{path}.properties", why)
    if level == "root" and kind not in ("", "object"):
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _common_member_faults(properties: Schema, path: str, *, root: bool) -> Faults:
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type", "") != "string":
            kind = properties[name].get("type", "")
            yield invalid(f"{path}.properties[{name}].type", kind, "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type", "") != "object":
        yield invalid(f"{where}.type", metadata.get("type", ""), "must be object")
    allowed = {"type", "default", "description", "properties"}
    named = (metadata.get("properties") or {}).keys() <= {"name", "generateName"}
    declared = {key for key, value in metadata.items() if value}
    if root and (not named or not declared <= allowed or metadata.get("description")):
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield forbidden(where, why)


def _int_or_string_list(schema: Schema) -> str:
    """Return which list holds the `anyOf` that goes with x-kubernetes-int-or-string."""
    if schema.get("anyOf") == _INT_OR_STRING:
        return "anyOf"
    first = (schema.get("allOf") or [{}])[0]
    return "allOf" if first.get("anyOf") == _INT_OR_STRING else ""


def _restriction_faults(schema: Schema, path: str, skipped: str = "") -> Faults:
    """Yield the faults of allOf, anyOf, oneOf, not and pattern."""
    for key in _LISTS:
        if key == "anyOf" and skipped == key:
            continue
        for index, below in enumerate(schema.get(key) or ()):
            inner = "anyOf" if key == "allOf" and skipped == key and not index else ""
            yield from _nested_faults(below, f"{path}.{key}[{index}]", inner)
    if schema.get("not") is not None:
        yield from _nested_faults(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", pattern, why)


def _nested_faults(schema: Schema, path: str, skipped: str = "") -> Faults:
    yield from _restriction_faults(schema, path, skipped)
    if isinstance(schema.get("items"), dict):
        yield from _nested_faults(schema["items"], f"{path}.items")
    properties = schema.get("properties") or {}
    for name, below in properties.items():
        yield from _nested_faults(below, f"{path}.properties[{name}]")
    for key, why in _TYPE_KEYWORDS:
        value = schema.get(key)
        if value or (key in _FORBIDDEN_IF_PRESENT and value is not None):
            yield forbidden(f"{path}.{key}", why)
    if "metadata" in properties:
        why = "must not be specified in a nested context"
        yield forbidden(f"{path}.properties[metadata]", why)


def _completeness_faults(
    restricting: Schema, schema: Schema | None, path: str, defined_at: str
) -> Faults:
    """Yield a fault for each restricted field that the schema itself does not declare."""
    for key in ("not", "allOf", "anyOf", "oneOf"):
        below = restricting.get(key)
        if not below:
            continue
        for index, each in enumerate(below if isinstance(below, list) else [below]):
            inner = (
                f"{defined_at}.{key}[{index}]" if isinstance(below, list) else f"{defined_at}.{key}"
            )
            yield from _nested_completeness_faults(each, schema, path, inner)


def _nested_completeness_faults(
    restricting: Schema, schema: Schema | None, path: str, defined_at: str
) -> Faults:
    if schema is None:
        yield required(path, f"because it is defined in {defined_at}")
        return
    yield from _completeness_faults(restricting, schema, path, defined_at)
    if isinstance(restricting.get("items"), dict):
        items = schema.get("items")
        known = items if isinstance(items, dict) else None
        yield from _nested_completeness_faults(
            restricting["items"], known, f"{path}.items", f"{defined_at}.items"
        )
    properties = schema.get("properties") or {}
    for name, below in (restricting.get("properties") or {}).items():
        step = f"properties[{name}]"
        known = properties.get(name)
        yield from _nested_completeness_faults(
            below, known, f"{path}.{step}", f"{defined_at}.{step}"
        )


# --- Defaults -----------------------------------------------------------------------------------


def _default_faults(schema: Schema, path: str, *, top: bool = False) -> Faults:
    """Yield the faults of defaults; those of metadata are forbidden elsewhere."""
    default = schema.get("default")
    if default is not None:
        where = f"{path}.default"
        if _has_unknown_fields(default, schema):
            yield invalid(where, default, "must not have unknown fields")
        for fault in validate(default, schema, top=False):
            inner = "" if fault.path == "<nil>" else fault.path
            dot = "." if inner and not inner.startswith("[") else ""
            yield FieldError(f"{where}{dot}{inner}", fault.message, fault.reason)
    if isinstance(schema.get("items"), dict):
        yield from _default_faults(schema["items"], f"{path}.items")
    for name, below in sorted((schema.get("properties") or {}).items()):
        if not (name in _META and (top or schema.get(_EMBEDDED))):
            yield from _default_faults(below, f"{path}.properties[{name}]")


def _has_unknown_fields(value: Any, schema: Schema) -> bool:
    """Whether a value has fields that would be pruned."""
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return any(_has_unknown_fields(item, items) for item in value)
    if not isinstance(value, dict):
        return False
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    known = _META if schema.get(_EMBEDDED) else ()
    for name, item in value.items():
        if name in properties:
            if _has_unknown_fields(item, properties[name]):
                return True
        elif isinstance(extra, dict):
            if _has_unknown_fields(item, extra):
                return True
        elif not extra and not schema.get(_PRESERVE) and name not in known:
            return True
    return False


# --- Everything else ----------------------------------------------------------------------------


def _general_faults(
    schema: Schema, path: str, *, root: bool = False, no_default: str = ""
) -> Faults:
    """Yield faults at any level of a schema; `no_default` says why defaults are forbidden."""
    yield from _unsupported_faults(schema, path, no_default)
    extra, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", why)
    if properties and extra is not None and extra is not True:
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", why)
    for where, below in _children(schema, path):
        inner = no_default
        if root and where in [f"{path}.properties[{name}]" for name in _META]:
            inner = f"in top-level {where[len(path) + 12 : -1]}"
        yield from _general_faults(below, where, no_default=inner)
    if isinstance(schema.get("items"), list):
        for index, below in enumerate(schema["items"]):
            yield from _general_faults(below, f"{path}.items[{index}]", no_default=no_default)
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    yield from _map_type_faults(schema, path)
    yield from _list_type_faults(schema, path)


def _unsupported_faults(schema: Schema, path: str, no_default: str) -> Faults:
    kind = schema.get("type", "")
    if kind and kind not in TYPES:
        yield unsupported(f"{path}.type", kind, TYPES)
    if schema.get("default") is not None and no_default:
        yield forbidden(f"{path}.default", f"must not be set {no_default}")
    for key in _UNSUPPORTED:
        value = schema.get(key)
        if value or (key in ("additionalItems", "$ref") and value is not None):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(f"{path}.type", why)
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")


def _map_type_faults(schema: Schema, path: str) -> Faults:
    declared, kind = schema.get(_MAP_TYPE), schema.get("type", "")
    if declared is None:
        return
    if kind != "object":
        why = f"must be object if {_MAP_TYPE} is specified"
        yield required(f"{path}.type", why) if not kind else invalid(f"{path}.type", kind, why)
    if declared not in ("atomic", "granular"):
        yield unsupported(f"{path}.{_MAP_TYPE}", declared, ("atomic", "granular"))


def _list_type_faults(schema: Schema, path: str) -> Faults:
    declared, kind, keys = schema.get(_LIST_TYPE), schema.get("type", ""), schema.get(_KEYS) or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if declared is not None and kind != "array":
        why = f"must be array if {_LIST_TYPE} is specified"
        yield required(f"{path}.type", why) if not kind else invalid(f"{path}.type", kind, why)
    elif declared == "set" and items is not None:
        yield from _set_item_faults(items, f"{path}.items")
    if declared is not None and declared not in ("atomic", "set", "map"):
        yield unsupported(f"{path}.{_LIST_TYPE}", declared, ("atomic", "set", "map"))
    if keys and declared != "map":
        why = f"must be map if {_KEYS} is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        yield required(where, why) if declared is None else invalid(where, declared, why)
    if declared == "map":
        yield from _map_item_faults(schema, items, keys, path)
    if declared in ("set", "map") and items is not None and items.get("nullable"):
        why = f"cannot be nullable when {_LIST_TYPE} is {declared}"
        yield forbidden(f"{path}.items.nullable", why)


def _set_item_faults(items: Schema, path: str) -> Faults:
    why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
        yield invalid(f"{path}.{_LIST_TYPE}", items[_LIST_TYPE], why)
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield invalid(f"{path}.{_MAP_TYPE}", items.get(_LIST_TYPE), why)


def _map_item_faults(schema: Schema, items: Schema | None, keys: list[str], path: str) -> Faults:
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if items is None:
        if not schema.get("items"):
            yield required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
        return
    if items.get("type", "") != "object":
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), why)
        return
    properties, seen = items.get("properties") or {}, set[str]()
    for key in keys:
        known = properties.get(key)
        if known is None:
            yield invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
        elif known.get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield invalid(f"{path}.items.properties[{key}].type", items["type"], why)
        if key in seen:
            yield invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
        seen.add(key)
        if known is not None:
            yield from _map_key_faults(items, key, known, f"{path}.items.properties[{key}]")


def _map_key_faults(items: Schema, key: str, known: Schema, path: str) -> Faults:
    if known.get("default") is None and key not in (items.get("required") or ()):
        why = f"this property is in {_KEYS}, so it must have a default or be a required property"
        yield required(f"{path}.default", why)
    if known.get("nullable"):
        why = f"this property is in {_KEYS}, so it cannot be nullable"
        yield forbidden(f"{path}.nullable", why)
