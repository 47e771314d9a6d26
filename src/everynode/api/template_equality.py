"""Template equality: whether two pod templates are the same to the API server.

A template can be written by a person, by another controller or by an API server of another
version. Defaults are applied first; then differences that an API server ignores are removed:
nulls, empty lists and maps, zeros of fields that cannot be unset, the spelling of quantities.
The order of lists is kept. Fields that the table of types does not know are compared as they are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.defaults import default_template, write_quantity
from everynode.api.types import INT_OR_STRING, POD_TEMPLATE, QUANTITY, FieldInfo, load

Object = dict[str, Any]

_CORE = "io.k8s.api.core.v1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# Optional scalars whose zero differs from absence. The OpenAPI description does not mark them:
# `hostNetwork: false` equals an absent field, `hostUsers: false` does not.
_ZERO_SPEAKS: dict[str, frozenset[str]] = {
    _CORE + name: frozenset(fields.split())
    for name, fields in {
        "AppArmorProfile": "localhostProfile",
        "AzureDiskVolumeSource": "cachingMode fsType kind readOnly",
        "CSIVolumeSource": "fsType readOnly",
        "ClusterTrustBundleProjection": "name optional signerName",
        "ConfigMapEnvSource": "optional",
        "ConfigMapKeySelector": "optional",
        "ConfigMapProjection": "optional",
        "ConfigMapVolumeSource": "defaultMode optional",
        "Container": "restartPolicy",
        "DownwardAPIVolumeFile": "mode",
        "DownwardAPIVolumeSource": "defaultMode",
        "EmptyDirVolumeSource": "sizeLimit",
        "EphemeralContainer": "restartPolicy",
        "FCVolumeSource": "lun",
        "FileKeySelector": "optional",
        "GRPCAction": "service",
        "HostPathVolumeSource": "type",
        "ISCSIVolumeSource": "initiatorName",
        "KeyToPath": "mode",
        "Lifecycle": "stopSignal",
        "PersistentVolumeClaimSpec": "storageClassName volumeAttributesClassName volumeMode",
        "PodCertificateProjection": "maxExpirationSeconds",
        "PodDNSConfigOption": "value",
        "PodResourceClaim": "resourceClaimName resourceClaimTemplateName",
        "PodSchedulingGroup": "podGroupName",
        "PodSecurityContext": (
            "fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser"
            " seLinuxChangePolicy supplementalGroupsPolicy"
        ),
        "PodSpec": (
            "activeDeadlineSeconds automountServiceAccountToken enableServiceLinks hostUsers"
            " hostnameOverride preemptionPolicy priority runtimeClassName setHostnameAsFQDN"
            " shareProcessNamespace terminationGracePeriodSeconds"
        ),
        "Probe": "terminationGracePeriodSeconds",
        "ProjectedVolumeSource": "defaultMode",
        "SeccompProfile": "localhostProfile",
        "SecretEnvSource": "optional",
        "SecretKeySelector": "optional",
        "SecretProjection": "optional",
        "SecretVolumeSource": "defaultMode optional",
        "SecurityContext": (
            "allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup"
            " runAsNonRoot runAsUser"
        ),
        "ServiceAccountTokenProjection": "expirationSeconds",
        "Toleration": "tolerationSeconds",
        "TopologySpreadConstraint": "minDomains nodeAffinityPolicy nodeTaintsPolicy",
        "TypedLocalObjectReference": "apiGroup",
        "TypedObjectReference": "apiGroup namespace",
        "VolumeMount": "mountPropagation recursiveReadOnly",
        "WindowsSecurityContextOptions": (
            "gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName"
        ),
    }.items()
} | {
    _META + "ObjectMeta": frozenset({"deletionGracePeriodSeconds"}),
    _META + "OwnerReference": frozenset({"blockOwnerDeletion", "controller"}),
}

_SCALARS = ("string", "integer", "number", "boolean")

# Objects that equal an absent field when empty. All others have a meaning when empty: an empty
# `emptyDir` is a volume, an empty `labelSelector` selects everything.
_EMPTY_IS_SILENT = frozenset(
    _CORE + name
    for name in (
        "Affinity",
        "Capabilities",
        "Lifecycle",
        "NodeAffinity",
        "NodeSelectorTerm",
        "PersistentVolumeClaimSpec",
        "PodAffinity",
        "PodAffinityTerm",
        "PodAntiAffinity",
        "PodDNSConfig",
        "PodSecurityContext",
        "PodSpec",
        "ResourceRequirements",
        "SELinuxOptions",
        "SecurityContext",
        "VolumeResourceRequirements",
        "WindowsSecurityContextOptions",
    )
) | {_META + "ObjectMeta"}


def normalise(template: bytes | Object) -> Object:
    """Return the canonical form of a template: equal exactly when the templates are equal."""
    decoded = _decode(template)
    # The `$patch` directive of a stored revision is not part of the template.
    defaulted = default_template({key: value for key, value in decoded.items() if key != "$patch"})
    return _object(defaulted, POD_TEMPLATE)


def template_digest(normalised: Object) -> bytes:
    """Return the bytes that the hash of a normalised template is computed from."""
    return msgspec.json.encode(normalised, order="deterministic")


def _decode(template: bytes | Object) -> Object:
    if isinstance(template, dict):
        return template
    try:
        return msgspec.json.decode(template, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"the template is not a JSON object: {error}") from error


def _object(value: Object, name: str) -> Object:
    fields = load()[name].fields
    speaking = _ZERO_SPEAKS.get(name, frozenset())
    canonical_object: Object = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            canonical_object[key] = item
            continue
        canonical = _value(item, field)
        if not _silent(canonical, field, zero_speaks=key in speaking):
            canonical_object[key] = canonical
    return canonical_object


def _value(value: Any, field: FieldInfo) -> Any:
    if field.ref == QUANTITY:
        return write_quantity(value)
    if isinstance(value, dict):
        if field.values is not None:
            return {key: _value(item, field.values) for key, item in value.items()}
        if field.ref and load()[field.ref].fields:
            return _object(value, field.ref)
    if isinstance(value, list) and field.items is not None:
        return [_value(item, field.items) for item in value]
    return value


def _silent(value: Any, field: FieldInfo, *, zero_speaks: bool) -> bool:
    """Whether the value means the same as an absent field."""
    if value is None:
        return True
    if isinstance(value, dict):
        return not value and (field.values is not None or field.ref in _EMPTY_IS_SILENT)
    if isinstance(value, list):
        return not value
    if field.ref == QUANTITY:
        return value == "0" and not zero_speaks
    scalar = field.type in _SCALARS or field.ref == INT_OR_STRING
    return scalar and not zero_speaks and value in ("", 0, False)
