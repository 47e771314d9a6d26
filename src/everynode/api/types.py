"""What the Kubernetes types look like: fields, enums and merge keys of the kinds we meet.

The table is read once, when first asked for; importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LABEL_SELECTOR = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"
POD = "io.k8s.api.core.v1.Pod"
POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"


class GroupVersionKind(msgspec.Struct, frozen=True, gc=False):
    """The name under which a type is served."""

    group: str
    version: str
    kind: str


class FieldInfo(msgspec.Struct, frozen=True, gc=False):
    """One field, or the item of a list, or the value of a map.

    Exactly one of `type` and `ref` is set where the type is known; `ref` names another entry of
    the table. The `default` is the OpenAPI zero value, not what the API server fills in.
    """

    type: str = ""  # string, integer, number, boolean, array, object or empty
    ref: str = ""
    format: str = ""
    items: FieldInfo | None = None
    values: FieldInfo | None = None
    enum: tuple[str, ...] = ()
    required: bool = False
    default: Any = None
    list_type: str = msgspec.field(default="", name="x-kubernetes-list-type")
    list_map_keys: tuple[str, ...] = msgspec.field(default=(), name="x-kubernetes-list-map-keys")
    map_type: str = msgspec.field(default="", name="x-kubernetes-map-type")
    patch_strategy: str = msgspec.field(default="", name="x-kubernetes-patch-strategy")
    patch_merge_key: str = msgspec.field(default="", name="x-kubernetes-patch-merge-key")


class TypeInfo(msgspec.Struct, frozen=True, gc=False):
    """One type: an object with fields, or a scalar with a format (Time, Quantity)."""

    type: str = ""
    format: str = ""
    fields: dict[str, FieldInfo] = {}
    required: tuple[str, ...] = ()
    one_of: tuple[dict[str, str], ...] = msgspec.field(default=(), name="oneOf")
    kinds: tuple[GroupVersionKind, ...] = msgspec.field(
        default=(), name="x-kubernetes-group-version-kind"
    )
    map_type: str = msgspec.field(default="", name="x-kubernetes-map-type")


@cache
def load() -> Mapping[str, TypeInfo]:
    """The whole table by type name, read once."""
    import pkgutil  # late: importlib.resources costs 20 ms, this one 2

    raw = pkgutil.get_data("everynode.api", "types.json")
    assert raw is not None, "types.json is part of the package"
    table = msgspec.json.decode(raw, type=dict[str, TypeInfo])
    for info in table.values():
        for name in info.required:
            field = info.fields[name]
            info.fields[name] = msgspec.structs.replace(field, required=True)
    return table


@cache
def _kinds() -> Mapping[tuple[str, str, str], str]:
    return {
        (kind.group, kind.version, kind.kind): name
        for name, info in load().items()
        for kind in info.kinds
    }


def type_for(group: str, version: str, kind: str) -> str | None:
    """The name of the type that is served as this kind, if the table has it."""
    return _kinds().get((group, version, kind))
