"""OpenAPI v3 documents, one for each group and version.

kubectl reads them for `explain`, to learn that the server validates fields, and to compute
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
from everynode.apiserver.patches.formats import accepted_media_types
from everynode.apiserver.request.body import ServedKind

Object = dict[str, Any]

PREFIX: Final = "#/components/schemas/"
_OK: Final = {"200": {"description": "OK"}}
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")

# kubectl up to 1.28 asks for this before anything of v3.
V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO: Final = {"title": "Everynode", "version": types.KUBERNETES}


class DescribedSubresource(Protocol):
    """A subresource, as far as the documents describe it."""

    @property
    def name(self) -> str:
        """Its name, as in `status`."""
        ...


class DescribedKind(ServedKind, Protocol):
    """A kind, as far as the documents describe it."""

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
        """The REST verbs."""
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
    def subresources(self) -> Sequence[DescribedSubresource]:
        """The subresources."""
        ...


class Documents:
    """The documents of the kinds that are served now, each made when it is first requested."""

    def __init__(self, kinds: Sequence[DescribedKind]) -> None:
        self._kinds: dict[str, list[DescribedKind]] = {}
        for kind in kinds:
            self._kinds.setdefault(_address(kind), []).append(kind)
        self._made: dict[str, bytes] = {}

    def index(self) -> Object:
        """Return the list of documents, for /openapi/v3."""
        return {"paths": {path: {"serverRelativeURL": self._link(path)} for path in self._kinds}}

    def document(self, path: str) -> bytes | None:
        """Return the document of a group and version (`apis/apps/v1`), None for other paths."""
        if path not in self._kinds:
            return None
        if path not in self._made:
            self._made[path] = msgspec.json.encode(document(self._kinds[path]))
        return self._made[path]

    def _link(self, path: str) -> str:
        content = self.document(path) or b""
        return f"/openapi/v3/{path}?hash={hashlib.sha256(content).hexdigest().upper()}"


def _address(kind: DescribedKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(kinds: Sequence[DescribedKind]) -> Object:
    """Return the document of the kinds of one group and version."""
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
    """Return the media type and the OpenAPI v2 document, which is empty.

    Old clients fail without one, but get schemas from v3 or from their own types.
    """
    if "protobuf" in accept:
        info = _protobuf_string(1, _INFO["title"]) + _protobuf_string(2, _INFO["version"])
        return V2_PROTOBUF, _protobuf_string(1, "2.0") + bytes([2 << 3 | 2, len(info)]) + info
    empty = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}
    return "application/json", msgspec.json.encode(empty)


def _protobuf_string(number: int, text: str) -> bytes:
    """Encode a short string as a field of a protobuf message."""
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def schema_name(kind: DescribedKind) -> str:
    """Return the name of a kind's schema; for custom resources from the reversed group."""
    if kind.type_name is not None:
        return kind.type_name
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{kind.kind}"


# --- Schemas -------------------------------------------------------------------------------------


def _add_type(name: str, schemas: Object) -> None:
    """Add a type and all types that it refers to."""
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
    """Return the schema of a type of the table; the caller must not change it."""
    info = types.load()[name]
    descriptions = _descriptions().get(name.rsplit(".", 1)[1], {})
    out: Object = {"description": descriptions[""]} if "" in descriptions else {}
    for key, value in (("type", info.type), ("format", info.format)):
        if value:
            out[key] = value
    if info.one_of:
        out["oneOf"] = list(info.one_of)
    if info.required:
        out["required"] = list(info.required)
    if info.fields:
        out["properties"] = {
            field: _field_schema(what, descriptions.get(field, ""))
            for field, what in info.fields.items()
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
    for key, mark in _extensions(field).items():
        if mark:
            out[f"x-kubernetes-{key}"] = mark
    return out


def _extensions(field: FieldInfo) -> dict[str, Any]:
    return {
        "list-type": field.list_type,
        "list-map-keys": list(field.list_map_keys),
        "map-type": field.map_type,
        "patch-strategy": field.patch_strategy,
        "patch-merge-key": field.patch_merge_key,
    }


def custom_schema(kind: DescribedKind) -> Object:
    """Return the schema of a custom resource, with the members that every object has."""
    own = dict(kind.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    descriptions = _descriptions().get("Object", {})
    metadata = {
        "description": descriptions.get("metadata", ""),
        "allOf": [{"$ref": PREFIX + types.OBJECT_META}],
    }
    texts = {
        name: {"description": descriptions.get(name, ""), "type": "string"}
        for name in ("apiVersion", "kind")
    }
    own["properties"] = {**own.get("properties", {}), **texts, "metadata": metadata}
    own["x-kubernetes-group-version-kind"] = [_gvk(kind)]
    return own


@cache
def _descriptions() -> Mapping[str, Mapping[str, str]]:
    """Return descriptions by short type name and field; that of the type itself is under ""."""
    import pkgutil  # late: importlib.resources costs 20 ms, this one 2

    raw = pkgutil.get_data("everynode.apiserver.output", "descriptions.json")
    assert raw is not None, "descriptions.json is part of the package"
    descriptions = msgspec.json.decode(raw, type=dict[str, dict[str, str]])
    shared = descriptions.get("Object", {})
    for kind in {info.kinds[0].kind: None for info in types.load().values() if info.kinds}:
        descriptions[kind] = {**shared, **descriptions.get(kind, {})}
    return descriptions


# --- Paths ---------------------------------------------------------------------------------------


def _gvk(kind: DescribedKind) -> Object:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _paths(kind: DescribedKind, name: str) -> Object:
    """Return the paths at which objects are listed, created, read and changed."""
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


def _collection_path(kind: DescribedKind, name: str, within: str) -> Object:
    path: Object = {"parameters": _path_parameters(within)}
    for method, verb in (("get", "list"), ("delete", "deletecollection")):
        if verb in kind.verbs:
            path[method] = _operation(kind, verb)
    if "create" in kind.verbs:
        path["post"] = _write(kind, "post", name)
    return path


def _object_path(kind: DescribedKind, name: str, within: str, *, delete: bool) -> Object:
    path: Object = {
        "get": _operation(kind, "get"),
        "put": _write(kind, "put", name),
        "patch": _patch(kind),
        "parameters": [_parameter("name", where="path"), *_path_parameters(within)],
    }
    if delete:
        path["delete"] = _operation(kind, "delete")
    return path


def _operation(kind: DescribedKind, action: str) -> Object:
    return {
        "responses": _OK,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _write(kind: DescribedKind, action: str, name: str) -> Object:
    schema = {"schema": {"$ref": PREFIX + name}}
    return {
        **_operation(kind, action),
        "parameters": [_parameter(each) for each in _WRITE_PARAMETERS],
        "requestBody": {"content": {"application/json": schema, "application/yaml": schema}},
    }


def _patch(kind: DescribedKind) -> Object:
    content = {
        media: {"schema": {"type": "object"}} for media in accepted_media_types(kind.type_name)
    }
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
