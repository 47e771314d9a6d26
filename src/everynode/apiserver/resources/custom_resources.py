"""Custom resources: strategies of CRDs and of their objects, and the kinds that CRDs define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from everynode.api.crd import CRD_NAME as ADVANCED
from everynode.api.crd import crd
from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import IMMUTABLE, invalid
from everynode.apiserver.errors import bad_request
from everynode.apiserver.resources.conditions import set_condition
from everynode.apiserver.resources.crd_schema import SchemaTypeError, normalise_schema
from everynode.apiserver.resources.crd_validation import definition_faults
from everynode.apiserver.resources.registry import (
    VERBS,
    Kind,
    Registry,
    RenamingConversion,
    status_subresource,
)
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext
from everynode.apiserver.schema.openapi_validation import Defaulter, validate
from everynode.apiserver.schema.type_tree import custom_type_tree

Object = dict[str, Any]

CUSTOM_RESOURCE_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class CustomResourceDefinitionStrategy(ResourceStrategy):
    """CustomResourceDefinitions: established as soon as they are stored."""

    status = True
    generation = True

    def default(self, obj: Object) -> Object:
        """Default the names from the kind, and the conversion to None."""
        spec = {**(obj.get("spec") or {})}
        if spec.get("versions") is not None:
            spec["versions"] = _read_schemas(spec["versions"])
        names = {**(spec.get("names") or {})}
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        spec["names"] = names
        spec.setdefault("conversion", {"strategy": "None"})
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Establish the definition."""
        super().prepare_create(obj, context)
        _set_established(obj, {}, context.now)
        _warn_not_simulated(obj, context)

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Establish the changed definition."""
        super().prepare_update(new, old, context)
        _set_established(new, old.get("status") or {}, context.now)
        if new["spec"] != old["spec"]:
            _warn_not_simulated(new, context)

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check the name, the versions and their schemas."""
        spec, name = obj["spec"], obj["metadata"]["name"]
        faults = []
        if name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
            why = 'must be spec.names.plural+"."+spec.group'
            faults.append(invalid("metadata.name", name, why))
        return [*faults, *_definition_faults(obj)]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same, and that group, scope, plural and kind stay."""
        after, before = new["spec"], old["spec"]
        if after == before:
            return []
        faults = self.validate_create(new, context)
        for path in ("group", "scope"):
            if after.get(path) != before.get(path):
                faults.append(invalid(f"spec.{path}", after.get(path), IMMUTABLE))
        for path in ("plural", "kind"):
            if after["names"].get(path) != before["names"].get(path):
                faults.append(invalid(f"spec.names.{path}", after["names"].get(path), IMMUTABLE))
        return faults


@cache
def _advanced_daemonset_versions() -> list[Object]:
    """Return the versions of the Advanced DaemonSet's CRD, known to be valid."""
    versions: list[Object] = crd()["spec"]["versions"]
    return versions


def _read_schemas(versions: list[Object | None]) -> list[Object | None]:
    """Return the versions with their schemas normalised."""
    return (
        versions
        if versions == _advanced_daemonset_versions()
        else [_read_schema(v or {}) for v in versions]
    )


def _read_schema(version: Object) -> Object:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return version
    try:
        return {**version, "schema": {"openAPIV3Schema": normalise_schema(schema)}}
    except SchemaTypeError as error:
        kind = "CustomResourceDefinition"
        raise bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
        ) from None


def _definition_faults(obj: Object) -> list[FieldError]:
    """Return the faults of a definition; one without faults was used to build its kinds here.

    A definition that cannot be served must not be stored: a restarted server could not serve it.
    """
    if (
        obj["metadata"]["name"] == ADVANCED
        and obj["spec"].get("versions") == _advanced_daemonset_versions()
    ):
        return []
    faults = definition_faults(obj)
    if not faults:
        for kind in _kinds_of_spec(msgspec.json.encode(obj["spec"]), CustomResourceStrategy):
            custom_type_tree(kind.schema)
    return faults


def _warn_not_simulated(obj: Object, context: StrategyContext) -> None:
    """Warn about CEL rules and conversion webhooks, which are not run here."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    if name == ADVANCED:
        return  # its CEL rules are enforced in Python
    versions = [each.get("name", "") for each in spec.get("versions") or () if _has_cel_rules(each)]
    if versions:
        context.warn(
            f"{name}: the rules of x-kubernetes-validations ({', '.join(versions)}) are kept, but "
            "the embedded cluster does not evaluate them"
        )
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        context.warn(
            f"{name}: the embedded cluster does not call the webhook that converts versions"
        )


def _has_cel_rules(value: Any) -> bool:
    """Whether there is a CEL rule anywhere in a schema."""
    if isinstance(value, dict):
        return "x-kubernetes-validations" in value or any(map(_has_cel_rules, value.values()))
    return isinstance(value, list) and any(map(_has_cel_rules, value))


def _set_established(obj: Object, before: Object, now: str) -> None:
    """Set the status that the controllers of kube-apiserver set a moment later."""
    spec = obj["spec"]
    storing = [v.get("name", "") for v in spec.get("versions") or () if v.get("storage")]
    stored = list(dict.fromkeys([*(before.get("storedVersions") or ()), *storing]))
    status: Object = {**before, "acceptedNames": spec["names"], "storedVersions": stored}
    for kind, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        set_condition(status, condition, now)
    obj["status"] = status


class CustomResourceStrategy(ResourceStrategy):
    """Custom resources: defaults and validation come from the schema."""

    generation = True
    unconditional_update = False

    def __init__(self, schema: Object, *, status: bool) -> None:
        self._schema = schema
        self._defaulter = Defaulter.from_schema(schema, top=True)
        below = (schema.get("properties") or {}).get("status")
        self._status = below
        self._status_defaulter = (
            Defaulter.from_schema({"properties": {"status": below}}) if below else None
        )
        self.status = status

    def default(self, obj: Object) -> Object:
        """Set the defaults of the schema."""
        defaulted: Object = obj if self._defaulter is None else self._defaulter.apply_defaults(obj)
        return defaulted

    def default_status(self, obj: Object) -> Object:
        """Set the defaults of the status only; all the rest is reset to the old object."""
        defaulted: Object = (
            obj if self._status_defaulter is None else self._status_defaulter.apply_defaults(obj)
        )
        return defaulted

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Set the defaults of the status: a real API server sets them when it reads the object."""
        if self.status:
            obj.update(self.default_status(obj))

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Count every change outside metadata and status."""
        super().prepare_update(new, old, context)
        if _content(new, status=self.status) != _content(old, status=self.status):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Reset the metadata, too."""
        super().prepare_status(new, old, context)
        kept = {**old["metadata"]}
        if "managedFields" in new["metadata"]:
            kept["managedFields"] = new["metadata"]["managedFields"]
        new["metadata"] = kept

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Validate by the schema."""
        return list(validate(obj, self._schema))

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Validate by the schema."""
        return list(validate(new, self._schema))

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        """Validate the status only; nothing else can have changed."""
        if self._status is None or "status" not in new:
            return list(validate(new, self._schema))
        fit = custom_type_tree(self._schema).fast_checks.get("status")
        if fit is not None and fit.accepts(new["status"]):
            return []
        return list(validate(new["status"], self._status, "status", top=False))


def _content(obj: Object, *, status: bool) -> Object:
    apart = ("metadata", "status") if status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in apart}


def kinds_of_definition(
    definition: Object, strategy: type[CustomResourceStrategy] = CustomResourceStrategy
) -> list[Kind]:
    """Return the kinds that a definition defines, the preferred version first."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    served = [version for version in spec["versions"] if version.get("served")]
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    kinds = []
    for version in sorted(
        served, key=lambda version: _version_priority(version["name"]), reverse=True
    ):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        status = (version.get("subresources") or {}).get("status") is not None
        shown = f"{group}/{version['name']}"
        conversion = (
            None if version["name"] == stored else RenamingConversion(shown, f"{group}/{stored}")
        )
        kinds.append(
            Kind(
                group,
                version["name"],
                names["kind"],
                names["plural"],
                names.get("singular") or names["kind"].lower(),
                namespaced=spec.get("scope") == "Namespaced",
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                verbs=VERBS,
                subresources=(status_subresource(names["kind"]),) if status else (),
                strategy=strategy(schema, status=status),
                conversion=conversion,
                schema=schema,
                columns=tuple(version.get("additionalPrinterColumns") or (_AGE,)),
                list_kind=names.get("listKind", ""),
                custom=True,
            )
        )
    return kinds


# Kinds by spec: a large definition takes long to read, and many clusters begin with the same one.
_KINDS_CACHE: Final[dict[tuple[bytes, type[CustomResourceStrategy]], list[Kind]]] = {}
_MAX_CACHED: Final = 4


class _StoredDefinition(msgspec.Struct, gc=False):
    spec: msgspec.Raw


def _kinds_of_stored(body: bytes, strategy: type[CustomResourceStrategy]) -> list[Kind]:
    """Return the kinds of a stored definition."""
    return _kinds_of_spec(bytes(msgspec.json.decode(body, type=_StoredDefinition).spec), strategy)


def _kinds_of_spec(spec: bytes, strategy: type[CustomResourceStrategy]) -> list[Kind]:
    found = _KINDS_CACHE.get((spec, strategy))
    if found is None:
        found = kinds_of_definition({"spec": msgspec.json.decode(spec)}, strategy)
        if len(_KINDS_CACHE) >= _MAX_CACHED:
            del _KINDS_CACHE[next(iter(_KINDS_CACHE))]
        _KINDS_CACHE[spec, strategy] = found
    return found


def _version_priority(version: str) -> tuple[int, int, int]:
    """Sort key: v2 above v1, v1 above v1beta1, that above v1alpha1, other names last."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (-1, 0, 0)
    stability = {None: 2, "beta": 1, "alpha": 0}[found[2]]
    return (stability, int(found[1]), int(found[3] or 0))


class CustomResourceRegistrar:
    """Registers the kinds of the stored CustomResourceDefinitions."""

    def __init__(
        self, kinds: Registry, special: Mapping[str, type[CustomResourceStrategy]]
    ) -> None:
        self._kinds = kinds
        self._special = special  # strategies with more than a schema, by definition name
        self._made: dict[str, list[Kind]] = {}

    def serve_definition(self, name: str, body: bytes) -> None:
        """Serve the kinds of a new or changed definition."""
        kinds = _kinds_of_stored(body, self._special.get(name, CustomResourceStrategy))
        self.forget(name)
        # A definition cannot replace a built-in kind.
        self._made[name] = [kind for kind in kinds if not self._kinds.is_built_in(kind.storage)]
        for kind in self._made[name]:
            self._kinds.add(kind)

    def forget(self, name: str) -> list[Kind]:
        """Stop serving the kinds of a definition, and return them."""
        kinds = self._made.pop(name, [])
        for kind in kinds:
            self._kinds.remove(kind)
        return kinds
