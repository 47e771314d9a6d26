"""CustomResourceDefinition of the Advanced DaemonSet, built from the table of types and rules.

There is no webhook: the schema and its CEL rules refuse invalid values of the DaemonSet's own
fields. They agree with our own validation because both come from one table. Both versions are
stored alike, so that a conversion between them only changes the apiVersion.
"""

from __future__ import annotations

from typing import Any, Final

from everynode.api import keys
from everynode.api.types import (
    ADVANCED_SPEC,
    ADVANCED_STATUS,
    INT_OR_STRING,
    POD_TEMPLATE,
    QUANTITY,
    FieldInfo,
    lookup,
)
from everynode.api.validation.advanced import RULES, FieldPath, Rule
from everynode.api.validation.field_errors import INVALID

Object = dict[str, Any]

PLURAL: Final = "daemonsets"
CRD_NAME: Final = f"{PLURAL}.{keys.KRUISE_GROUP}"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_CORE: Final = "io.k8s.api.core.v1."

# Rarely used types of a pod that get no schema: any object is accepted.
_OPAQUE: Final = frozenset(
    _CORE + name
    for name in (
        *("AWSElasticBlockStoreVolumeSource", "AzureDiskVolumeSource", "AzureFileVolumeSource"),
        *("CephFSVolumeSource", "CinderVolumeSource", "ClusterTrustBundleProjection"),
        *("ContainerRestartRule", "EphemeralContainer", "EphemeralVolumeSource"),
        *("FCVolumeSource", "FlexVolumeSource", "FlockerVolumeSource", "FileKeySelector"),
        *("GCEPersistentDiskVolumeSource", "GitRepoVolumeSource", "GlusterfsVolumeSource"),
        *("ISCSIVolumeSource", "PhotonPersistentDiskVolumeSource", "PodCertificateProjection"),
        *("PodResourceClaim", "PodSchedulingGroup", "PortworxVolumeSource"),
        *("QuobyteVolumeSource", "RBDVolumeSource", "ScaleIOVolumeSource"),
        *("StorageOSVolumeSource", "VsphereVirtualDiskVolumeSource"),
        *("WindowsSecurityContextOptions",),
    )
) | {"io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"}

# Lists that server-side apply merges by name, as in the native kind.
_NAMED_LISTS: Final = frozenset({"containers", "initContainers", "volumes"})

_CONTAINER_LISTS: Final = ("containers", "initContainers")
# Without these no pod can be made, so that no template may lack them.
_REQUIRED: Final = {POD_TEMPLATE: ("spec",), f"{_CORE}PodSpec": ("containers",)}

_LIMITS: Final = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}

# Tools read these counts, and take one that is absent for something else than 0.
_COUNTS: Final = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
)
# The status of a DaemonSet that no controller has seen: no generation is observed, so that tools
# which compare it with metadata.generation do not take a new object for a finished one.
_BIRTH: Final = {"observedGeneration": -1} | dict.fromkeys(_COUNTS, 0)

# rollingUpdate, partition and paused are always there, as with Kruise's webhook: the health check
# that Argo CD has for this kind reads them without asking whether they are.
_DEFAULTS: Final[dict[FieldPath, Any]] = {
    ("updateStrategy",): {},
    ("updateStrategy", "type"): "RollingUpdate",
    ("updateStrategy", "rollingUpdate"): {},
    ("updateStrategy", "rollingUpdate", "partition"): 0,
    ("updateStrategy", "rollingUpdate", "paused"): False,
    ("burstReplicas",): 250,
    ("revisionHistoryLimit",): 10,
    ("status",): _BIRTH,
    **{("status", name): value for name, value in _BIRTH.items()},
}

_WORDS: Final[dict[FieldPath, str]] = {
    (): "What the pods look like, which they are, and how they are replaced by newer ones.",
    ("selector",): "Which pods are managed; it must match the template's labels and never changes.",
    ("template",): "The pod to run on every node that it may run on.",
    ("updateStrategy",): "What happens when the template changes.",
    ("updateStrategy", "type"): (
        "RollingUpdate replaces pods within the limits below; OnDelete replaces a pod once it is "
        "deleted."
    ),
    ("updateStrategy", "rollingUpdate"): "The limits of a rolling update.",
    ("updateStrategy", "rollingUpdate", "rollingUpdateType"): (
        "Standard deletes and creates pods. InPlaceIfPossible changes images and resources of "
        "running pods where it can. Surging is Standard with maxSurge 1 and maxUnavailable 0."
    ),
    ("updateStrategy", "rollingUpdate", "type"): "Another spelling of rollingUpdateType.",
    ("updateStrategy", "rollingUpdate", "maxUnavailable"): (
        "How many nodes, or which percentage of them, may be without an available pod because of "
        "the update. 1 if maxSurge is absent, too."
    ),
    ("updateStrategy", "rollingUpdate", "maxSurge"): (
        "On how many nodes, or which percentage of them, a new pod may run beside the old one."
    ),
    ("updateStrategy", "rollingUpdate", "partition"): (
        "How many nodes, or which percentage of them, keep the old pod."
    ),
    ("updateStrategy", "rollingUpdate", "selector"): "Which nodes, by their labels, are updated.",
    ("updateStrategy", "rollingUpdate", "paused"): "Whether the update stops where it is.",
    ("minReadySeconds",): "For how long a pod must be ready before it counts as available.",
    ("burstReplicas",): "How many pods are created or deleted at once, at most.",
    ("revisionHistoryLimit",): "How many old templates are kept to go back to.",
    ("lifecycle",): "Hooks that hold up the end of a pod.",
    ("lifecycle", "preDelete"): (
        "While a pod carries any of these it is marked PreparingDelete instead of being deleted."
    ),
    ("lifecycle", "preDelete", "markPodNotReady"): (
        "Whether such a pod is made not ready, so that no traffic reaches it any more."
    ),
    ("lifecycle", "inPlaceUpdate"): "Not available for DaemonSets.",
    ("lifecycle", "preNormal"): "Accepted and ignored.",
    ("scaleStrategy",): "How pods are created where there were none.",
    ("scaleStrategy", "partitionedScaling"): "Whether the partition also holds back creation.",
}

# A definition must require the keys of its lists; since 1.37 the types of Kubernetes do not say so.
_REQUIRED_IN_LISTS: Final[dict[FieldPath, tuple[str, ...]]] = {
    ("status", "conditions", "[]"): ("type", "status"),
}
_OF_READY: Final = '.status.conditions[?(@.type=="Ready")]'
_COLUMNS: Final = (
    ("DESIRED", "integer", ".status.desiredNumberScheduled", "nodes that should have a pod", 0),
    ("CURRENT", "integer", ".status.currentNumberScheduled", "nodes that have a pod", 0),
    ("READY", "integer", ".status.numberReady", "nodes with a ready pod", 0),
    ("UP-TO-DATE", "integer", ".status.updatedNumberScheduled", "nodes with the newest pod", 0),
    ("AVAILABLE", "integer", ".status.numberAvailable", "nodes with an available pod", 0),
    ("STATE", "string", _OF_READY + ".reason", "whether all is as declared, or what is not", 0),
    ("AGE", "date", ".metadata.creationTimestamp", "time since the creation", 0),
    ("CONTAINERS", "string", ".spec.template.spec.containers[*].name", "names of containers", 1),
    ("IMAGES", "string", ".spec.template.spec.containers[*].image", "images of containers", 1),
    ("REASON", "string", _OF_READY + ".message", "why it is in that state, and which nodes", 1),
)


def crd() -> Object:
    """Return the CustomResourceDefinition, ready to be applied."""
    names = {
        "kind": keys.KIND,
        "listKind": f"{keys.KIND}List",
        "plural": PLURAL,
        "singular": "daemonset",
        "shortNames": ["daemon", "ads"],
        "categories": ["all"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": keys.KRUISE_GROUP,
            "names": names,
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [_version("v1alpha1", stored=False), _version("v1beta1", stored=True)],
        },
    }


def _version(name: str, *, stored: bool) -> Object:
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, "description": words}
            | ({"priority": priority} if priority else {})
            for name, kind, path, words, priority in _COLUMNS
        ],
    }


def schema() -> Object:
    """Return the OpenAPI schema; both versions have the same."""
    made: Object = {
        "type": "object",
        "description": "One pod on every node, rolled out safely.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _own(ADVANCED_SPEC, ()),
            "status": _own(ADVANCED_STATUS, ("status",)),
        },
    }
    for rule in RULES:
        place = _place(made, rule.at)
        place.setdefault("x-kubernetes-validations", []).append(_validation(rule))
    return made


# --- The DaemonSet's own fields ----------------------------------------------------------------


def _own(name: str, at: FieldPath) -> Object:
    info = lookup(name)
    properties = {key: _own_field(field, (*at, key)) for key, field in info.fields.items()}
    schema = _with_description({"type": "object", "properties": properties}, at)
    if at in _DEFAULTS:
        schema["default"] = _DEFAULTS[at]
    required = _REQUIRED_IN_LISTS.get(at, info.required)
    if required:
        schema["required"] = list(required)
    if info.map_type:
        schema["x-kubernetes-map-type"] = info.map_type
    return schema


def _own_field(field: FieldInfo, at: FieldPath) -> Object:
    if field.ref == POD_TEMPLATE:
        return _with_description(_pod_part(POD_TEMPLATE), at)
    if field.ref == INT_OR_STRING:
        schema: Object = {"x-kubernetes-int-or-string": True}
    elif field.ref and lookup(field.ref).fields:
        schema = _own(field.ref, at)
    else:
        schema = _plain(field)
        if field.items is not None:
            schema["items"] = _own_field(field.items, (*at, "[]"))
        if field.values is not None:
            schema["additionalProperties"] = _own_field(field.values, (*at, "{}"))
        if field.enum:
            schema["enum"] = list(field.enum)
        if field.list_type:
            schema["x-kubernetes-list-type"] = field.list_type
        if field.list_map_keys:
            schema["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
        if field.limit:
            schema[_LIMITS[field.type]] = field.limit
        if field.pattern:
            schema["pattern"] = field.pattern
    if at in _DEFAULTS:
        schema["default"] = _DEFAULTS[at]
    return _with_description(schema, at)


def _with_description(schema: Object, at: FieldPath) -> Object:
    words = _WORDS.get(at)
    return {"description": words} | schema if words else schema


def _plain(field: FieldInfo) -> Object:
    """Return the schema of a scalar, or of a list or map without its items."""
    if field.ref:
        info = lookup(field.ref)
        schema: Object = {"type": info.type or "string"}
        if info.format:
            schema["format"] = info.format
        return schema
    # No format for numbers: the API server's error would not name the field.
    return {"type": field.type}


# --- The pod template --------------------------------------------------------------------------


def _pod_part(name: str) -> Object:
    """Return the schema of a type of the pod; fields of newer Kubernetes versions are kept."""
    schema: Object = {"type": "object", PRESERVE: True}
    info = lookup(name)
    if name not in _OPAQUE and info.fields:
        schema["properties"] = {key: _pod_field(key, field) for key, field in info.fields.items()}
    if name in _REQUIRED:
        schema["required"] = list(_REQUIRED[name])
    return schema


def _pod_field(name: str, field: FieldInfo) -> Object:
    if field.ref == QUANTITY:
        # A quantity is a string, an integer or a fraction; no schema type allows all three.
        return {PRESERVE: True}
    if field.ref == INT_OR_STRING:
        return {"x-kubernetes-int-or-string": True}
    if field.ref and lookup(field.ref).type == "object":
        return _pod_part(field.ref)
    schema: Object = {"type": _plain(field)["type"]}
    if field.items is not None:
        schema["items"] = _pod_field("", field.items)
        if name in _NAMED_LISTS:
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
            schema["items"]["required"] = (
                ["name", "image"] if name in _CONTAINER_LISTS else ["name"]
            )
    if field.values is not None:
        schema["additionalProperties"] = _pod_field("", field.values)
    if name == "restartPolicy" and field.enum:  # the pod's, not a container's
        schema["enum"] = ["Always"]
    return schema


# --- The rules ---------------------------------------------------------------------------------


def _place(schema: Object, at: FieldPath) -> Object:
    for name in at:
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return schema


def _validation(rule: Rule) -> Object:
    schema: Object = {"rule": rule.cel, "message": rule.message}
    if rule.field:
        schema["fieldPath"] = "." + ".".join(rule.field)
    if rule.reason != INVALID:
        schema["reason"] = rule.reason
    return schema
