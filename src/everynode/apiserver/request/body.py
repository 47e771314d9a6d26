"""Request bodies: decoding JSON, YAML and protobuf, and validating their fields.

`read_object` and `read_subresource_object` decode the body of a request. They first try a fast path
(`_try_fast_decode`) that handles valid JSON without options in one pass; everything else goes
through `decode_body`, which finds unknown and duplicate fields and words the errors.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final, Protocol

import msgspec

from everynode.api import types
from everynode.apiserver.errors import (
    StatusError,
    bad_request,
    invalid_option,
    unsupported_media_type,
)
from everynode.apiserver.request import protobuf, yaml_body
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.json_syntax import (
    JsonSyntaxError,
    may_have_duplicate_keys,
    parse_json,
)
from everynode.apiserver.schema import field_validation
from everynode.apiserver.schema.object_type import ObjectType
from everynode.apiserver.schema.structs import struct_for

Object = dict[str, Any]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
MEDIA_TYPES: Final = (JSON, YAML, protobuf.MEDIA_TYPE)

IGNORE: Final = "Ignore"
STRICT: Final = "Strict"
WARN: Final = "Warn"
_FIELD_VALIDATIONS: Final = ("", IGNORE, STRICT, WARN)

_ANY_VERSION_KIND: Final = "DeleteOptions"  # clients send the version of the object they delete
_MAX_SHOWN: Final = 30  # bytes or characters of a body that messages repeat


class ServedKind(Protocol):
    """Group, version and kind that an endpoint accepts."""

    @property
    def group(self) -> str:
        """The API group, empty for core kinds."""
        ...

    @property
    def version(self) -> str:
        """The version, as in `v1`."""
        ...

    @property
    def kind(self) -> str:
        """The kind, as in `Pod`."""
        ...


class BodyKind(ServedKind, Protocol):
    """What an endpoint accepts as body: group, version and kind, and the type of the fields."""

    @property
    def object_type(self) -> ObjectType:
        """The type by which the fields are decoded and validated."""
        ...


class NestedKind(msgspec.Struct, frozen=True):
    """The BodyKind of bodies that are not resources, such as Binding and DeleteOptions."""

    group: str
    version: str
    kind: str
    object_type: ObjectType


class _TypeMeta(msgspec.Struct, rename={"api_version": "apiVersion"}):
    kind: str = ""
    api_version: str = ""


@lru_cache(maxsize=64)
def media_type_of(content_type: str) -> str:
    """Return the media type of a Content-Type header, without parameters; cached."""
    return content_type.partition(";")[0].strip()


def field_validation_option(request: ApiRequest) -> str:
    """Return the `fieldValidation` option: Strict, Warn (the default) or Ignore."""
    value = request.query.get("fieldValidation", "")
    if value not in _FIELD_VALIDATIONS:
        shown = ", ".join(f'"{each}"' for each in _FIELD_VALIDATIONS)
        message = f'Unsupported value: "{value}": supported values: {shown}'
        verb = {"POST": "Create", "PUT": "Update"}.get(request.http.method, "Patch")
        raise invalid_option(verb, "fieldValidation", message)
    return value or WARN


# --- The object of a request ---------------------------------------------------------------------


def read_object(request: ApiRequest) -> Object:
    """Return the object of a POST or PUT; warnings are added to the request."""
    kind = request.kind
    if kind.custom:
        _require_type_meta(request)
    obj = _try_fast_decode(request, kind)
    if obj is not None:
        return obj
    obj = _decode_with_warnings(request, kind)
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return obj


def read_subresource_object(request: ApiRequest, body_kind: NestedKind) -> Object:
    """Return a body of another kind than the resource's own, such as Binding or Eviction."""
    obj = _try_fast_decode(request, body_kind, allow_duplicates=False)
    return _decode_with_warnings(request, body_kind) if obj is None else obj


def _decode_with_warnings(request: ApiRequest, body_kind: BodyKind) -> Object:
    obj, warnings = decode_body(
        request.http.body,
        body_kind,
        content_type=request.http.content_type,
        validation=field_validation_option(request),
    )
    request.warnings.extend(warnings)
    return obj


def _try_fast_decode(
    request: ApiRequest, body_kind: BodyKind, *, allow_duplicates: bool = True
) -> Object | None:
    """Decode valid JSON of a built-in type in one pass; None if anything is unusual about it.

    Finding duplicate keys costs a second pass, so a request with a `fieldValidation` option does
    not come this way.
    """
    type_name = body_kind.object_type.name
    if type_name is None or "fieldValidation" in request.query:
        return None
    decoder = _struct_decoder(type_name)
    if decoder is None or media_type_of(request.http.content_type) != JSON:
        return None
    try:
        obj: Object = msgspec.to_builtins(decoder.decode(request.http.body))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if not allow_duplicates and may_have_duplicate_keys(request.http.body, obj):
        return None
    if obj.setdefault("kind", body_kind.kind) != body_kind.kind:
        return None
    expected = _api_version(body_kind)
    return obj if obj.setdefault("apiVersion", expected) == expected else None


@cache
def _struct_decoder(type_name: str) -> msgspec.json.Decoder[msgspec.Struct] | None:
    struct = struct_for(type_name)
    return None if struct is None else msgspec.json.Decoder(struct)


def _require_type_meta(request: ApiRequest) -> None:
    """Require apiVersion and kind in a custom resource; built-in kinds may omit them."""
    try:
        sent = msgspec.json.decode(request.http.body, type=_TypeMeta)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return  # decode_body words the error better
    for name, value in (("Kind", sent.kind), ("apiVersion", sent.api_version)):
        if not value:
            text = request.http.body.decode(errors="replace")
            raise bad_request(
                f"the object provided is unrecognized (must be of type {request.kind.kind}): "
                f"Object '{name}' is missing in '{text}' ({_shorten(text)})"
            )
    if sent.api_version != request.kind.api_version:
        raise bad_request(
            f"the API version in the data ({sent.api_version}) does not match the expected API "
            f"version ({request.kind.api_version})"
        )


# --- Decoding and validating ---------------------------------------------------------------------


def decode_body(
    body: bytes, body_kind: BodyKind, *, content_type: str, validation: str = WARN
) -> tuple[Object, list[str]]:
    """Decode and validate a body; return the object and the warnings for the client.

    apiVersion and kind default to the endpoint's. Unknown and duplicate fields are an error, a
    warning or ignored, as `validation` says.
    """
    media = media_type_of(content_type) or JSON
    object_type = body_kind.object_type
    if media not in MEDIA_TYPES or (media == protobuf.MEDIA_TYPE and object_type.name is None):
        raise unsupported_media_type(MEDIA_TYPES if object_type.name else (JSON, YAML))
    value, problems = _decode(body, media, body_kind)
    value = {} if value is None else value
    type_meta = _check_type_meta(value, body_kind)
    try:
        if media == JSON:
            obj, found = field_validation.convert_body(value, body, object_type)
        else:
            obj, found = field_validation.convert_object(value, object_type)
    except field_validation.BodyTypeError as error:
        raise _cannot_be_handled_error(type_meta, body_kind, str(error)) from None
    problems += found
    if problems and validation == STRICT:
        why = f"strict decoding error: {', '.join(problems)}"
        raise _cannot_be_handled_error(type_meta, body_kind, why)
    obj["apiVersion"], obj["kind"] = type_meta
    return obj, problems if validation == WARN else []


def _decode(body: bytes, media: str, kind: ServedKind) -> tuple[Any, list[str]]:
    """Return the value of a body, and the duplicate keys of YAML (JSON's are found later)."""
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body), []
        except protobuf.ProtobufError as error:
            raise _unrecognized_error(kind, str(error), _shorten_hex(body)) from None
    if media == YAML:
        try:
            value, duplicates = yaml_body.parse_yaml(body)
        except yaml_body.YamlBodyError as error:
            raise _unrecognized_error(kind, str(error), _shorten_hex(body)) from None
        return value, _duplicate_keys_message(duplicates)
    try:
        return parse_json(body), []
    except JsonSyntaxError as error:
        shown = _shorten(body.decode(errors="replace") or "<empty>")
        why = f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized_error(kind, why, shown) from None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} ..."


def _shorten_hex(body: bytes) -> str:
    return body.hex() if len(body) <= _MAX_SHOWN else f"{body[:_MAX_SHOWN].hex()} ..."


def _duplicate_keys_message(lines: list[str]) -> list[str]:
    return ["yaml: unmarshal errors:\n  " + "\n  ".join(lines)] if lines else []


def _api_version(kind: ServedKind) -> str:
    return f"{kind.group}/{kind.version}" if kind.group else kind.version


def _check_type_meta(value: Any, kind: ServedKind) -> tuple[str, str]:
    """Return apiVersion and kind of an object; raises 400 if they are not the endpoint's."""
    if not isinstance(value, dict):
        raise _unrecognized_error(kind, "couldn't get version/kind; the body is not an object", "")
    expected = _api_version(kind)
    sent = value.get("apiVersion") or expected
    name = value.get("kind") or kind.kind
    if not isinstance(sent, str) or not isinstance(name, str):
        raise _unrecognized_error(kind, "apiVersion and kind must be texts", "")
    if (sent, name) == (expected, kind.kind) or name == kind.kind == _ANY_VERSION_KIND:
        return sent, name
    group, slash, version = sent.rpartition("/")
    group = group if slash else ""
    if not any(types.type_for(group, version, each) for each in (name, name.removesuffix("List"))):
        why = f'no kind "{name}" is registered for version "{sent}"'
    else:
        home = kind.group.partition(".")[0] or "core"
        why = f"converting ({version}.{name}) to ({home}.{kind.kind}): unknown conversion"
    raise _cannot_be_handled_error((sent, name), kind, why)


def _unrecognized_error(kind: ServedKind, why: str, shown: str) -> StatusError:
    prefix = f"the object provided is unrecognized (must be of type {kind.kind})"
    return bad_request(f"{prefix}: {why} ({shown})")


def _cannot_be_handled_error(type_meta: tuple[str, str], kind: ServedKind, why: str) -> StatusError:
    api_version, name = type_meta
    version = api_version.rpartition("/")[2]
    return bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')


# --- Apply patches -------------------------------------------------------------------------------


def read_apply_patch(body: bytes, *, validation: str = WARN) -> tuple[Object, list[str]]:
    """Return the object of a server-side apply (YAML or JSON), and the warnings for the client."""
    try:
        value, duplicates = _parse_yaml_or_json(body)
    except yaml_body.YamlBodyError as error:
        why = f"error decoding YAML: error converting YAML to JSON: {error}"
        raise bad_request(why) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        go_type = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        why = f"json: cannot unmarshal {go_type} into Go value of type map[string]interface {{}}"
        prefix = "error decoding patch: error unmarshaling JSON: while decoding JSON: "
        raise bad_request(prefix + why)
    messages = _duplicate_keys_message(duplicates)
    problems = [f"error converting YAML to JSON: {message}" for message in messages]
    if problems and validation == STRICT:
        raise bad_request(f"error strict decoding YAML: {problems[0]}")
    return value, problems if validation == WARN else []


def _parse_yaml_or_json(body: bytes) -> tuple[Any, list[str]]:
    if body[:1] == b"{":
        # JSON is YAML too. The YAML parser is much slower and only needed to name duplicate keys,
        # which show in the count of quotation marks (json_syntax.may_have_duplicate_keys).
        try:
            value = msgspec.json.decode(body)
            if body.count(b'"') == msgspec.json.encode(value).count(b'"'):
                return value, []
        except (ValueError, RecursionError):
            pass
    return yaml_body.parse_yaml(body)
