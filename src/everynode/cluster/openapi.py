"""What the server serves, described as OpenAPI v3: one document for each group and version.

kubectl reads it to explain kinds, to know that the server checks fields itself, and to compute
patches; so the documents hold schemas, merge keys, and the few paths that lead to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from everynode.api import types
from everynode.api.types import FieldInfo, TypeInfo
from everynode.cluster.bodies import Served
from everynode.cluster.patch import accepted

Object = dict[str, Any]

PREFIX: Final = "#/components/schemas/"
_OK: Final = {"200": {"description": "OK"}}
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")

# What kubectl up to 1.28 asks for before it asks for anything of v3.
V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO: Final = {"title": "Everynode", "version": "v1.36.3"}


class Part(Protocol):
    """A subresource, as far as documents tell of it."""

    @property
    def name(self) -> str:
        """Its name, as in `status`."""
        ...


class Described(Served, Protocol):
    """A kind, as far as documents tell of it."""

    @property
    def plural(self) -> str:
        """The resource, as in `pods`."""
        ...

    @property
    def namespaced(self) -> bool:
        """Whether objects live in namespaces."""
        ...

    @property
    def verbs(self) -> Sequence[str]:
        """What can be done with its objects."""
        ...

    @property
    def type_name(self) -> str | None:
        """Its entry in the table of types, None for custom kinds."""
        ...

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema of a custom kind."""
        ...

    @property
    def subresources(self) -> Sequence[Part]:
        """What has an address of its own within an object."""
        ...


class Documents:
    """All documents of the kinds that are served now, each made when it is first asked for."""

    def __init__(self, kinds: Sequence[Described]) -> None:
        self._kinds: dict[str, list[Described]] = {}
        for kind in kinds:
            self._kinds.setdefault(_address(kind), []).append(kind)
        self._made: dict[str, bytes] = {}

    def index(self) -> Object:
        """The list of documents, as at /openapi/v3."""
        return {"paths": {path: {"serverRelativeURL": self._link(path)} for path in self._kinds}}

    def document(self, path: str) -> bytes | None:
        """The document of a group and version (`api/v1`, `apis/apps/v1`), None for others."""
        if path not in self._kinds:
            return None
        if path not in self._made:
            self._made[path] = msgspec.json.encode(document(self._kinds[path]))
        return self._made[path]

    def _link(self, path: str) -> str:
        content = self.document(path) or b""
        return f"/openapi/v3/{path}?hash={hashlib.sha256(content).hexdigest().upper()}"


def _address(kind: Described) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(kinds: Sequence[Described]) -> Object:
    """The document of some kinds of one group and version."""
    schemas: Object = {}
    paths: Object = {}
    for kind in kinds:
        name = schema_name(kind)
        if kind.type_name is not None:
            _add_type(kind.type_name, schemas)
        else:
            _add_type(types.OBJECT_META, schemas)
            schemas[name] = custom_schema(kind)
        paths.update(_paths(kind, name))
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def v2_document(accept: str) -> tuple[str, bytes]:
    """The document of OpenAPI v2 and its media type: there for old clients, and empty.

    They must be able to read it, but find what they look for in v3 or in their own types.
    """
    if "protobuf" in accept:
        info = _text(1, _INFO["title"]) + _text(2, _INFO["version"])
        return V2_PROTOBUF, _text(1, "2.0") + bytes([2 << 3 | 2, len(info)]) + info
    empty = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}
    return "application/json", msgspec.json.encode(empty)


def _text(number: int, text: str) -> bytes:
    """A short text as a field of a protobuf message."""
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def schema_name(kind: Described) -> str:
    """What a kind is called among the schemas; custom ones by their group, reversed."""
    if kind.type_name is not None:
        return kind.type_name
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{kind.kind}"


# --- Schemas -------------------------------------------------------------------------------------


def _add_type(name: str, schemas: Object) -> None:
    """Add a type and all that it contains."""
    queue = [name]
    while queue:
        name = queue.pop()
        if name not in schemas:
            schemas[name] = type_schema(name)
            queue += _references(types.load()[name])


def _references(info: TypeInfo) -> list[str]:
    found = []
    for field in info.fields.values():
        inner: FieldInfo | None = field
        while inner is not None:
            if inner.ref:
                found.append(inner.ref)
            inner = inner.items or inner.values
    return found


@cache
def type_schema(name: str) -> Object:
    """The schema of a type of the table; it must not be changed."""
    info = types.load()[name]
    said = _descriptions().get(name.rsplit(".", 1)[1], {})
    out: Object = {"description": said[""]} if "" in said else {}
    for key, value in (("type", info.type), ("format", info.format)):
        if value:
            out[key] = value
    if info.one_of:
        out["oneOf"] = list(info.one_of)
    if info.required:
        out["required"] = list(info.required)
    if info.fields:
        out["properties"] = {
            field: _field_schema(what, said.get(field, "")) for field, what in info.fields.items()
        }
    if info.map_type:
        out["x-kubernetes-map-type"] = info.map_type
    if info.kinds:
        out["x-kubernetes-group-version-kind"] = [
            {"group": kind.group, "kind": kind.kind, "version": kind.version} for kind in info.kinds
        ]
    return out


def _field_schema(field: FieldInfo, description: str = "") -> Object:
    out: Object = {"description": description} if description else {}
    if field.ref:
        out["allOf"] = [{"$ref": PREFIX + field.ref}]
    for key, value in (("type", field.type), ("format", field.format)):
        if value:
            out[key] = value
    if field.default is not None:
        out["default"] = field.default
    if field.enum:
        out["enum"] = list(field.enum)
    if field.items is not None:
        out["items"] = _field_schema(field.items)
    if field.values is not None:
        out["additionalProperties"] = _field_schema(field.values)
    for key, mark in _marks(field).items():
        if mark:
            out[f"x-kubernetes-{key}"] = mark
    return out


def _marks(field: FieldInfo) -> dict[str, Any]:
    return {
        "list-type": field.list_type,
        "list-map-keys": list(field.list_map_keys),
        "map-type": field.map_type,
        "patch-strategy": field.patch_strategy,
        "patch-merge-key": field.patch_merge_key,
    }


def custom_schema(kind: Described) -> Object:
    """The schema of a custom kind, with the members that every object has."""
    own = dict(kind.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    said = _descriptions().get("Object", {})
    metadata = {
        "description": said.get("metadata", ""),
        "allOf": [{"$ref": PREFIX + types.OBJECT_META}],
    }
    texts = {
        name: {"description": said.get(name, ""), "type": "string"}
        for name in ("apiVersion", "kind")
    }
    own["properties"] = {**own.get("properties", {}), **texts, "metadata": metadata}
    own["x-kubernetes-group-version-kind"] = [_named(kind)]
    return own


@cache
def _descriptions() -> Mapping[str, Mapping[str, str]]:
    """Our own sentences, by the short name of the type and the field; the type's own under ""."""
    import pkgutil  # late: importlib.resources costs 20 ms, this one 2

    raw = pkgutil.get_data("everynode.cluster", "descriptions.json")
    assert raw is not None, "descriptions.json is part of the package"
    said = msgspec.json.decode(raw, type=dict[str, dict[str, str]])
    shared = said.get("Object", {})
    for kind in {info.kinds[0].kind: None for info in types.load().values() if info.kinds}:
        said[kind] = {**shared, **said.get(kind, {})}
    return said


# --- Paths ---------------------------------------------------------------------------------------


def _named(kind: Described) -> Object:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _paths(kind: Described, name: str) -> Object:
    """Where objects are listed, made, read and changed."""
    root = "/" + _address(kind)
    within = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{within}/{kind.plural}"
    one = f"{collection}/{{name}}"
    paths: Object = {collection: _collection_path(kind, name, within)}
    if "get" in kind.verbs:
        paths[one] = _object_path(kind, name, within, delete=True)
    if within and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = {"get": _operation(kind, "list")}
    if any(part.name == "status" for part in kind.subresources):
        paths[f"{one}/status"] = _object_path(kind, name, within, delete=False)
    return paths


def _collection_path(kind: Described, name: str, within: str) -> Object:
    path: Object = {"parameters": _path_parameters(within)}
    for method, verb in (("get", "list"), ("delete", "deletecollection")):
        if verb in kind.verbs:
            path[method] = _operation(kind, verb)
    if "create" in kind.verbs:
        path["post"] = _write(kind, "post", name)
    return path


def _object_path(kind: Described, name: str, within: str, *, delete: bool) -> Object:
    path: Object = {
        "get": _operation(kind, "get"),
        "put": _write(kind, "put", name),
        "patch": _patch(kind),
        "parameters": [_parameter("name", where="path"), *_path_parameters(within)],
    }
    if delete:
        path["delete"] = _operation(kind, "delete")
    return path


def _operation(kind: Described, action: str) -> Object:
    return {
        "responses": _OK,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _named(kind),
    }


def _write(kind: Described, action: str, name: str) -> Object:
    schema = {"schema": {"$ref": PREFIX + name}}
    return {
        **_operation(kind, action),
        "parameters": [_parameter(each) for each in _WRITE_PARAMETERS],
        "requestBody": {"content": {"application/json": schema, "application/yaml": schema}},
    }


def _patch(kind: Described) -> Object:
    content = {media: {"schema": {"type": "object"}} for media in accepted(kind.type_name)}
    parameters = [*(_parameter(each) for each in _WRITE_PARAMETERS), _parameter("force", "boolean")]
    return {
        **_operation(kind, "patch"),
        "parameters": parameters,
        "requestBody": {"content": content, "required": True},
    }


def _parameter(name: str, kind: str = "string", *, where: str = "query") -> Object:
    out: Object = {"name": name, "in": where, "schema": {"type": kind, "uniqueItems": True}}
    return {**out, "required": True} if where == "path" else out


def _path_parameters(within: str) -> list[Object]:
    return [_parameter("namespace", where="path")] if within else []
