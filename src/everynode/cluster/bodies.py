"""Reading the bodies of requests: JSON, YAML and protobuf, refused in the real server's words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from everynode.api import types
from everynode.cluster import manifest, protobuf, strict
from everynode.cluster.errors import Refusal, bad_request, unsupported_media_type
from everynode.cluster.syntax import SyntaxFault, parse

Object = dict[str, Any]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
MEDIA_TYPES: Final = (JSON, YAML, protobuf.MEDIA_TYPE)

STRICT: Final = "Strict"
WARN: Final = "Warn"

_OF_EVERY_VERSION: Final = "DeleteOptions"  # clients name the version of what they delete
_SHOWN: Final = 30  # as much of a body as messages repeat


class Served(Protocol):
    """What must be known of the kind that an endpoint serves."""

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


@lru_cache(maxsize=64)
def media_of(content_type: str) -> str:
    """The type of a body, without its parameters; clients send the same few over and over."""
    return content_type.partition(";")[0].strip()


def read_object(
    body: bytes,
    *,
    content_type: str,
    kind: Served,
    type_name: str | None,
    schema: Mapping[str, Any] | None = None,
    validation: str = WARN,
) -> tuple[Object, list[str]]:
    """The object of a POST or PUT as its kind has it, and the warnings to send along.

    apiVersion and kind may be missing, then the endpoint's are meant; unknown and duplicate
    fields refuse the request, warn or pass as `validation` (Strict, Warn, Ignore) says.
    """
    media = media_of(content_type) or JSON
    if media not in MEDIA_TYPES or (media == protobuf.MEDIA_TYPE and type_name is None):
        raise unsupported_media_type(MEDIA_TYPES if type_name else (JSON, YAML))
    value, problems = _value(body, media, kind)
    value = {} if value is None else value
    named = _require_kind(value, kind)
    try:
        if media == JSON:
            obj, found = strict.check_body(value, body, type_name=type_name, schema=schema)
        else:
            obj, found = strict.check(value, type_name=type_name, schema=schema)
    except strict.DecodeError as error:
        raise _cannot_be_handled(named, kind, str(error)) from None
    problems += found
    if problems and validation == STRICT:
        raise _cannot_be_handled(named, kind, f"strict decoding error: {', '.join(problems)}")
    obj["apiVersion"], obj["kind"] = named
    return obj, problems if validation == WARN else []


def _value(body: bytes, media: str, kind: Served) -> tuple[Any, list[str]]:
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body), []
        except protobuf.ProtobufError as error:
            raise _unrecognized(kind, str(error), _hex(body)) from None
    if media == YAML:
        try:
            value, twice = manifest.read_yaml(body)
        except manifest.ManifestError as error:
            raise _unrecognized(kind, str(error), _hex(body)) from None
        return value, _twice(twice)
    try:
        return parse(body), []
    except SyntaxFault as error:
        shown = body.decode(errors="replace") or "<empty>"
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
        why = f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized(kind, why, shown) from None


def _hex(body: bytes) -> str:
    return body.hex() if len(body) <= _SHOWN else f"{body[:_SHOWN].hex()} ..."


def _twice(lines: list[str]) -> list[str]:
    return ["yaml: unmarshal errors:\n  " + "\n  ".join(lines)] if lines else []


def _unrecognized(kind: Served, why: str, shown: str) -> Refusal:
    prefix = f"the object provided is unrecognized (must be of type {kind.kind})"
    return bad_request(f"{prefix}: {why} ({shown})")


def _require_kind(value: Any, kind: Served) -> tuple[str, str]:
    """apiVersion and kind of the object; refused if they are another endpoint's."""
    if not isinstance(value, dict):
        raise _unrecognized(kind, "couldn't get version/kind; the body is not an object", "")
    expected = f"{kind.group}/{kind.version}" if kind.group else kind.version
    sent = value.get("apiVersion") or expected
    name = value.get("kind") or kind.kind
    if not isinstance(sent, str) or not isinstance(name, str):
        raise _unrecognized(kind, "apiVersion and kind must be texts", "")
    if (sent, name) == (expected, kind.kind) or name == kind.kind == _OF_EVERY_VERSION:
        return sent, name
    group, slash, version = sent.rpartition("/")
    group = group if slash else ""
    if not any(types.type_for(group, version, each) for each in (name, name.removesuffix("List"))):
        why = f'no kind "{name}" is registered for version "{sent}"'
    else:
        home = kind.group.partition(".")[0] or "core"
        why = f"converting ({version}.{name}) to ({home}.{kind.kind}): unknown conversion"
    raise _cannot_be_handled((sent, name), kind, why)


def _cannot_be_handled(named: tuple[str, str], kind: Served, why: str) -> Refusal:
    version = named[0].rpartition("/")[2]
    return bad_request(
        f'{named[1]} in version "{version}" cannot be handled as a {kind.kind}: {why}'
    )


def read_applied(body: bytes, *, validation: str = WARN) -> tuple[Object, list[str]]:
    """The object of an apply patch, YAML or JSON, and the warnings to send along."""
    try:
        value, twice = _yaml_or_json(body)
    except manifest.ManifestError as error:
        why = f"error decoding YAML: error converting YAML to JSON: {error}"
        raise bad_request(why) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        sort = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        why = f"json: cannot unmarshal {sort} into Go value of type map[string]interface {{}}"
        prefix = "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
        raise bad_request(prefix + why)
    problems = [f"error converting YAML to JSON: {problem}" for problem in _twice(twice)]
    if problems and validation == STRICT:
        raise bad_request(f"error strict decoding YAML: {problems[0]}")
    return value, problems if validation == WARN else []


def _yaml_or_json(body: bytes) -> tuple[Any, list[str]]:
    if body[:1] == b"{":
        # JSON is YAML too; only what is said twice in it is worth the slower way.
        try:
            value = msgspec.json.decode(body)
            if body.count(b'"') == msgspec.json.encode(value).count(b'"'):
                return value, []
        except msgspec.DecodeError:
            pass
    return manifest.read_yaml(body)
