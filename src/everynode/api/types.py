"""Kubernetes types: fields, enums and merge keys, from types.json and for the Advanced DaemonSet.

The table is read once, at its first use; importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

# The release of Kubernetes that types.json was made from, and that hack/kubernetes/go.mod pins.
KUBERNETES: Final = "v1.37.1"

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
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
    # Maximum size (bytes, items or entries) and pattern. Set for the Advanced DaemonSet only.
    limit: int = 0
    pattern: str = ""


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


def lookup(name: str) -> TypeInfo:
    """Return a type by name, from the table or the Advanced DaemonSet."""
    return ADVANCED.get(name) or load()[name]


# --- The Advanced DaemonSet --------------------------------------------------------------------

ADVANCED_DAEMONSET = "io.kruise.apps.DaemonSet"
NATIVE_DAEMONSET = "io.k8s.api.apps.v1.DaemonSet"
ADVANCED_SPEC = "io.kruise.apps.DaemonSetSpec"
ADVANCED_STRATEGY = "io.kruise.apps.DaemonSetUpdateStrategy"
ADVANCED_ROLLING = "io.kruise.apps.RollingUpdateDaemonSet"
ADVANCED_LIFECYCLE = "io.kruise.apps.Lifecycle"
ADVANCED_HOOK = "io.kruise.apps.LifecycleHook"
ADVANCED_SCALE = "io.kruise.apps.ScaleStrategy"
ADVANCED_SELECTOR = "io.kruise.apps.LabelSelector"
ADVANCED_REQUIREMENT = "io.kruise.apps.LabelSelectorRequirement"
ADVANCED_STATUS = "io.kruise.apps.DaemonSetStatus"

LABEL_VALUE = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
MAX_REQUIREMENTS = 32
MAX_VALUES = 5000
UPDATE_TYPES = ("RollingUpdate", "OnDelete")
ROLLING_TYPES = ("Standard", "InPlaceIfPossible", "Surging")

_STRING = FieldInfo(type="string")
_BOOLEAN = FieldInfo(type="boolean")
_INT32 = FieldInfo(type="integer", format="int32")
_INT64 = FieldInfo(type="integer", format="int64")
_AMOUNT = FieldInfo(ref=INT_OR_STRING)
_CONDITIONS = FieldInfo(
    type="array",
    items=FieldInfo(ref="io.k8s.api.apps.v1.DaemonSetCondition"),
    list_type="map",
    list_map_keys=("type",),
)
_COUNTERS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
)


def _object(required: tuple[str, ...] = (), **fields: FieldInfo) -> TypeInfo:
    for name in required:
        fields[name] = msgspec.structs.replace(fields[name], required=True)
    return TypeInfo(type="object", fields=fields, required=required)


# Both API versions have the same fields, so that conversion loses nothing.
ADVANCED: Mapping[str, TypeInfo] = {
    ADVANCED_DAEMONSET: _object(
        ("spec",),
        apiVersion=_STRING,
        kind=_STRING,
        metadata=FieldInfo(ref=OBJECT_META),
        spec=FieldInfo(ref=ADVANCED_SPEC),
        status=FieldInfo(ref=ADVANCED_STATUS),
    ),
    ADVANCED_SPEC: _object(
        ("selector", "template"),
        selector=FieldInfo(ref=ADVANCED_SELECTOR),
        template=FieldInfo(ref=POD_TEMPLATE),
        updateStrategy=FieldInfo(ref=ADVANCED_STRATEGY),
        minReadySeconds=_INT32,
        burstReplicas=_AMOUNT,
        revisionHistoryLimit=_INT32,
        lifecycle=FieldInfo(ref=ADVANCED_LIFECYCLE),
        scaleStrategy=FieldInfo(ref=ADVANCED_SCALE),
    ),
    ADVANCED_STRATEGY: _object(
        type=FieldInfo(type="string", enum=UPDATE_TYPES),
        rollingUpdate=FieldInfo(ref=ADVANCED_ROLLING),
    ),
    ADVANCED_ROLLING: _object(
        rollingUpdateType=FieldInfo(type="string", enum=ROLLING_TYPES),
        type=FieldInfo(type="string", enum=ROLLING_TYPES),
        maxUnavailable=_AMOUNT,
        maxSurge=_AMOUNT,
        partition=_AMOUNT,
        selector=FieldInfo(ref=ADVANCED_SELECTOR),
        paused=_BOOLEAN,
    ),
    # The limits let the API server estimate the cost of a CEL rule. A list of values can name every
    # node of a large cluster.
    ADVANCED_SELECTOR: TypeInfo(
        type="object",
        map_type="atomic",
        fields={
            "matchLabels": FieldInfo(
                type="object", values=FieldInfo(type="string", limit=63), limit=MAX_REQUIREMENTS
            ),
            "matchExpressions": FieldInfo(
                type="array",
                items=FieldInfo(ref=ADVANCED_REQUIREMENT),
                list_type="atomic",
                limit=MAX_REQUIREMENTS,
            ),
        },
    ),
    ADVANCED_REQUIREMENT: _object(
        ("key", "operator"),
        key=FieldInfo(type="string", limit=317),
        operator=FieldInfo(type="string", limit=63),
        values=FieldInfo(
            type="array",
            items=FieldInfo(type="string", limit=63, pattern=LABEL_VALUE),
            list_type="atomic",
            limit=MAX_VALUES,
        ),
    ),
    ADVANCED_LIFECYCLE: _object(
        preDelete=FieldInfo(ref=ADVANCED_HOOK),
        inPlaceUpdate=FieldInfo(ref=ADVANCED_HOOK),
        preNormal=FieldInfo(ref=ADVANCED_HOOK),
    ),
    ADVANCED_HOOK: _object(
        labelsHandler=FieldInfo(type="object", values=_STRING),
        finalizersHandler=FieldInfo(type="array", items=_STRING, list_type="atomic"),
        markPodNotReady=_BOOLEAN,
    ),
    ADVANCED_SCALE: _object(partitionedScaling=_BOOLEAN),
    ADVANCED_STATUS: _object(
        _COUNTERS,
        observedGeneration=_INT64,
        numberAvailable=_INT32,
        numberUnavailable=_INT32,
        collisionCount=_INT32,
        conditions=_CONDITIONS,
        updateRevision=_STRING,
        daemonSetHash=_STRING,
        **dict.fromkeys(_COUNTERS, _INT32),
    ),
}
