"""Validation of a CustomResourceDefinition, with kube-apiserver's messages.

kube-apiserver moves what all versions share (schema, subresources, columns) to the top of the spec
before it validates, so its messages name `spec.validation` where one version was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import forbidden, invalid, required, unsupported
from everynode.api.validation.names import dns_1035_label, dns_subdomain
from everynode.apiserver.resources.crd_schema import schema_faults

Object = dict[str, Any]
Faults = Iterator[FieldError]

APPROVAL: Final = "api-approved.kubernetes.io"
SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_REVIEWS: Final = ("v1", "v1beta1")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def definition_faults(obj: Object) -> list[FieldError]:
    """Return every fault of a definition."""
    return [*_spec_faults(obj["spec"]), *_approval_faults(obj)]


def _spec_faults(spec: Object) -> Faults:
    versions = spec.get("versions") or []
    yield from _group_faults(spec.get("group", ""))
    yield from _enum_faults("spec.scope", spec.get("scope", ""), SCOPES)
    for index, version in enumerate(versions):
        if _schema(version) is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and any(_has_default(_schema(v)) for v in versions):
        why = "must be false in order to use defaults in the schema"
        yield invalid("spec.preserveUnknownFields", True, why)
    yield from _version_faults(spec, versions)
    yield from _name_faults(spec["names"])
    yield from _shared_faults(versions)
    yield from _conversion_faults(spec)
    if not any(version.get("storage") for version in versions):
        why = "must have at least one stored version"
        yield invalid("status.storedVersions", None, why)
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, why)


def _group_faults(group: str) -> Faults:
    path = "spec.group"
    wrong = list(dns_subdomain(group)) if group else []
    if not group:
        yield required(path)
    elif wrong:
        yield invalid(path, group, ",".join(wrong))
    elif "." not in group:
        yield invalid(path, group, "should be a domain with at least one dot")


def _enum_faults(path: str, value: str, allowed: tuple[str, ...]) -> Faults:
    if not value:
        yield required(path)
    elif value not in allowed:
        yield unsupported(path, value, allowed)


def _schema(version: Object) -> Object | None:
    found: Object | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _has_default(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("default") is not None or any(map(_has_default, value.values()))
    return isinstance(value, list) and any(map(_has_default, value))


# --- Versions -----------------------------------------------------------------------------------


def _version_faults(spec: Object, versions: list[Object]) -> Faults:
    apart = [key for key in _VERSION_PARTS if not _all_versions_agree(versions, key)]
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name", "")
        yield from _label_faults(f"{path}.name", name)
        yield from _deprecation_faults(version, path)
        for key in apart:
            yield from _VERSION_PARTS[key](version, f"{path}.{_VERSION_PATHS[key]}")
    names = [version.get("name", "") for version in versions]
    if len(set(names)) < len(names):
        yield invalid(
            "spec.versions", _internal_versions(spec), "must contain unique version names"
        )
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", _internal_versions(spec), why)
    if names and names[0]:
        yield from _label_faults("spec.version", names[0])


def _label_faults(path: str, name: str) -> Faults:
    wrong = list(dns_1035_label(name))
    if wrong:
        yield invalid(path, name, ",".join(wrong))


class _InternalVersion(msgspec.Struct, rename="pascal"):
    """A version as messages show it: in the internal form, without what all versions share."""

    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: None = None
    subresources: None = None
    additional_printer_columns: None = None
    selectable_fields: None = None


def _internal_versions(spec: Object) -> list[_InternalVersion] | None:
    versions = spec.get("versions")
    if versions is None:
        return None
    return [
        _InternalVersion(
            version.get("name", ""),
            version.get("served", False),
            version.get("storage", False),
            version.get("deprecated", False),
            version.get("deprecationWarning"),
        )
        for version in versions
    ]


def _deprecation_faults(version: Object, path: str) -> Faults:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid(where, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode(errors="replace")) > 256:
        yield invalid(where, warning, "must be <= 256 characters long")
    if not warning:
        yield invalid(where, warning, "must not be an empty string")
    odd = next((at for at, char in enumerate(warning) if not char.isprintable()), None)
    if odd is not None:
        why = "must only contain printable UTF-8 characters; non-printable character found at index"
        yield invalid(where, warning, f"{why} {odd}")


def _all_versions_agree(versions: list[Object], key: str) -> bool:
    """Whether a part is the same in all versions, and so moved to the top of the spec."""
    return all(version.get(key) == versions[0].get(key) for version in versions)


def _shared_faults(versions: list[Object]) -> Faults:
    for key, faults in _VERSION_PARTS.items():
        if versions and _all_versions_agree(versions, key):
            yield from faults(versions[0], f"spec.{_SHARED_PATHS[key]}")


def _schema_faults(version: Object, path: str) -> Faults:
    schema = _schema(version)
    if schema is not None:
        yield from schema_faults(schema, f"{path}.openAPIV3Schema")


def _subresource_faults(version: Object, path: str) -> Faults:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for key, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, value = f"{path}.scale.{key}", scale.get(key, "")
        if not value:
            yield required(where)
        elif not value.startswith("."):
            yield invalid(where, value, "must be a simple json path starting with .")
        elif not value.startswith(start):
            yield invalid(where, value, f"should be a json path under {start[:-1]}")
    selector = scale.get("labelSelectorPath")
    where = f"{path}.scale.labelSelectorPath"
    if selector and not selector.startswith("."):
        yield invalid(where, selector, "must be a simple json path starting with .")
    elif selector and not selector.startswith((".spec.", ".status.")):
        yield invalid(where, selector, "should be a json path under either .spec or .status")


def _column_faults(version: Object, path: str) -> Faults:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where, kind = f"{path}[{index}]", column.get("type", "")
        if not column.get("name"):
            yield required(f"{where}.name")
        if kind not in _COLUMN_TYPES:
            why = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield invalid(f"{where}.type", kind, why) if kind else required(f"{where}.type", why)
        form = column.get("format")
        if form and form not in _FORMATS:
            yield invalid(f"{where}.format", form, f"must be one of {','.join(_FORMATS)}")
        steps = column.get("jsonPath", "")
        if not steps:
            yield required(f"{where}.JSONPath")
        elif not steps.startswith("."):
            why = "must be a simple json path starting with ."
            yield invalid(f"{where}.JSONPath", steps, why)


_VERSION_PARTS: Final[dict[str, Callable[[Object, str], Faults]]] = {
    "schema": _schema_faults,
    "subresources": _subresource_faults,
    "additionalPrinterColumns": _column_faults,
}
_VERSION_PATHS: Final = {key: key for key in _VERSION_PARTS}
_SHARED_PATHS: Final = {**_VERSION_PATHS, "schema": "validation"}


# --- Names, conversion, approval ----------------------------------------------------------------


def _name_faults(names: Object) -> Faults:
    path = "spec.names"
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield required(f"{path}.{key}")
    for key in ("plural", "singular"):
        if names.get(key):
            yield from _label_faults(f"{path}.{key}", names[key])
    for key in ("kind", "listKind"):
        wrong = list(dns_1035_label(names[key].lower())) if names.get(key) else []
        if wrong:
            why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            yield invalid(f"{path}.{key}", names[key], why)
    for index, name in enumerate(names.get("shortNames") or ()):
        yield from _label_faults(f"{path}.shortNames[{index}]", name or "")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["kind"], "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        yield from _label_faults(f"{path}.categories[{index}]", name or "")


def _conversion_faults(spec: Object) -> Faults:
    conversion = spec.get("conversion")
    if conversion is None:
        return
    path, strategy = "spec.conversion", conversion.get("strategy", "")
    if strategy != "None" and spec.get("preserveUnknownFields"):
        why = "must be None if spec.preserveUnknownFields is true"
        yield invalid(f"{path}.strategy", strategy, why)
    yield from _enum_faults(f"{path}.strategy", strategy, _STRATEGIES)
    webhook = conversion.get("webhook") or {}
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield forbidden(where, why)
        if reviews:
            yield forbidden(f"{path}.conversionReviewVersions", why)
        return
    if config is None:
        yield required(where, "required when strategy is set to Webhook")
    elif (config.get("url") is None) == (config.get("service") is None):
        yield required(where, "exactly one of url or service is required")
    elif config.get("url") is not None:
        yield from _url_faults(f"{where}.url", config["url"])
    yield from _review_faults(f"{path}.conversionReviewVersions", reviews)


def _url_faults(path: str, text: str) -> Faults:
    form = "; desired format: https://host[/path]"
    try:
        url = urlsplit(text)
        host, scheme = url.hostname or "", url.scheme
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{form}")
        return
    if scheme != "https":
        yield invalid(path, scheme, f"'https' is the only allowed URL scheme{form}")
    if not host:
        yield invalid(path, "", f"host must be specified{form}")


def _review_faults(path: str, versions: list[str]) -> Faults:
    if not versions:
        yield required(path)
        return
    seen = set[str]()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for why in dns_1035_label(version or ""):
            yield invalid(f"{path}[{index}]", version, why)
    if seen.isdisjoint(_REVIEWS):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _approval_faults(obj: Object) -> Faults:
    """Yield a fault if a group of the Kubernetes project lacks the approval annotation."""
    group = obj["spec"].get("group", "")
    if not any(group == name or group.endswith(f".{name}") for name in _PROTECTED):
        return
    approval = (obj["metadata"].get("annotations") or {}).get(APPROVAL, "")
    path = f"metadata.annotations[{APPROVAL}]"
    needs = f'protected groups must have approval annotation "{APPROVAL}"'
    if not approval:
        yield required(path, f"{needs}, {_SEE}")
    elif not approval.startswith("unapproved") and not _is_url(approval):
        why = f'{needs} with either a URL or a reason starting with "unapproved", {_SEE}'
        yield invalid(path, approval, why)


def _is_url(text: str) -> bool:
    try:
        url = urlsplit(text)
    except ValueError:
        return False
    return bool(url.scheme and url.netloc)
