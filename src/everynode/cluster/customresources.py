"""Custom kinds: definitions that become addresses, and what their objects must be like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api.crd import NAME as ADVANCED
from everynode.api.daemonset import Fault
from everynode.api.validation.faults import IMMUTABLE, invalid, required, unsupported
from everynode.cluster.conditions import set_condition
from everynode.cluster.kinds import VERBS, Kind, Registry, Renamed, status_of
from everynode.cluster.rules import Rules, World
from everynode.cluster.schema import Filler, check
from everynode.cluster.shape import custom_shape

Object = dict[str, Any]

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_SCOPES: Final = ("Cluster", "Namespaced")
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class DefinitionRules(Rules):
    """A definition is in force as soon as it is stored."""

    status = True
    generation = True

    def default(self, obj: Object) -> Object:
        """Names follow from the kind, and versions are not converted."""
        spec = {**(obj.get("spec") or {})}
        names = {**(spec.get("names") or {})}
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        spec["names"] = names
        spec.setdefault("conversion", {"strategy": "None"})
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, world: World) -> None:
        """Accept it."""
        super().prepare_create(obj, world)
        _accept(obj, {}, world.now)
        _warn(obj, world)

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """Accept what it has become."""
        super().prepare_update(new, old, world)
        _accept(new, old.get("status") or {}, world.now)
        if new["spec"] != old["spec"]:
            _warn(new, world)

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """Names must agree, one version must be stored, schemas must be there."""
        spec, name = obj["spec"], obj["metadata"]["name"]
        names = spec["names"]
        faults = []
        if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
            why = 'must be spec.names.plural+"."+spec.group'
            faults.append(invalid("metadata.name", name, why))
        faults += [required(f"spec.{key}") for key in ("group", "scope") if not spec.get(key)]
        faults += [
            required(f"spec.names.{key}")
            for key in ("plural", "singular", "kind", "listKind")
            if not names.get(key)
        ]
        if spec.get("scope", "Cluster") not in _SCOPES:
            faults.append(unsupported("spec.scope", spec["scope"], _SCOPES))
        return [*faults, *_version_faults(spec.get("versions") or [])]

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """Where its objects live cannot change."""
        faults = self.create_faults(new, world)
        after, before = new["spec"], old["spec"]
        for path in ("group", "scope"):
            if after.get(path) != before.get(path):
                faults.append(invalid(f"spec.{path}", after.get(path), IMMUTABLE))
        for path in ("plural", "kind"):
            if after["names"].get(path) != before["names"].get(path):
                faults.append(invalid(f"spec.names.{path}", after["names"].get(path), IMMUTABLE))
        return faults


def _version_faults(versions: list[Object]) -> list[Fault]:
    faults = []
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        faults.append(invalid("spec.versions", [v.get("name") for v in versions], why))
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            faults.append(required(path))
    return faults


def _warn(obj: Object, world: World) -> None:
    """Say what a real server would do with a definition and this one does not."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    if name == ADVANCED:
        return  # its rules are checked, and looking for them would take longer than all the rest
    versions = [each.get("name", "") for each in spec.get("versions") or () if _has_rules(each)]
    if versions:
        world.warn(
            f"{name}: the rules of x-kubernetes-validations ({', '.join(versions)}) are kept, but "
            "the embedded cluster does not evaluate them"
        )
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        world.warn(f"{name}: the embedded cluster does not call the webhook that converts versions")


def _has_rules(value: Any) -> bool:
    """Whether there is a rule anywhere in a schema."""
    if isinstance(value, dict):
        return "x-kubernetes-validations" in value or any(map(_has_rules, value.values()))
    return isinstance(value, list) and any(map(_has_rules, value))


def _accept(obj: Object, before: Object, now: str) -> None:
    """Write into the status what a real server takes a moment to work out."""
    spec = obj["spec"]
    storing = [v["name"] for v in spec.get("versions") or () if v.get("storage")]
    stored = list(dict.fromkeys([*(before.get("storedVersions") or ()), *storing]))
    status: Object = {**before, "acceptedNames": spec["names"], "storedVersions": stored}
    for kind, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        set_condition(status, condition, now)
    obj["status"] = status


class CustomRules(Rules):
    """An object of a custom kind: its schema is its law."""

    generation = True
    unconditional_update = False

    def __init__(self, schema: Object, *, status: bool) -> None:
        self._schema = schema
        self._filler = Filler.of(schema, top=True)
        below = (schema.get("properties") or {}).get("status")
        self._status = below
        self._status_filler = Filler.of({"properties": {"status": below}}) if below else None
        self.status = status

    def default(self, obj: Object) -> Object:
        """Fill in what the schema has defaults for."""
        made: Object = obj if self._filler is None else self._filler.fill(obj)
        return made

    def default_status(self, obj: Object) -> Object:
        """Fill in the status alone: all the rest is put back to what it was."""
        made: Object = obj if self._status_filler is None else self._status_filler.fill(obj)
        return made

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """Every change outside metadata and status is counted."""
        super().prepare_update(new, old, world)
        if _content(new, status=self.status) != _content(old, status=self.status):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, world: World) -> None:
        """A status write leaves the metadata alone."""
        super().prepare_status(new, old, world)
        kept = {**old["metadata"]}
        if "managedFields" in new["metadata"]:
            kept["managedFields"] = new["metadata"]["managedFields"]
        new["metadata"] = kept

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """What the schema forbids."""
        return list(check(obj, self._schema))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """What the schema forbids."""
        return list(check(new, self._schema))

    def status_faults(self, new: Object, old: Object) -> list[Fault]:
        """What the schema forbids in a status; nothing else can have changed."""
        if self._status is None or "status" not in new:
            return list(check(new, self._schema))
        fit = custom_shape(self._schema).fits.get("status")
        if fit is not None and fit.takes(new["status"]):
            return []
        return list(check(new["status"], self._status, "status", top=False))


def _content(obj: Object, *, status: bool) -> Object:
    apart = ("metadata", "status") if status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in apart}


def kinds_of(definition: Object, rules: type[CustomRules] = CustomRules) -> list[Kind]:
    """The kinds that a definition makes, the preferred version first."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    served = [version for version in spec["versions"] if version.get("served")]
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    made = []
    for version in sorted(served, key=lambda version: _rank(version["name"]), reverse=True):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        status = (version.get("subresources") or {}).get("status") is not None
        shown = f"{group}/{version['name']}"
        view = None if version["name"] == stored else Renamed(shown, f"{group}/{stored}")
        made.append(
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
                subresources=(status_of(names["kind"]),) if status else (),
                rules=rules(schema, status=status),
                view=view,
                schema=schema,
                columns=tuple(version.get("additionalPrinterColumns") or (_AGE,)),
                list_kind=names.get("listKind", ""),
                custom=True,
            )
        )
    return made


# Definitions that were read before: a large one takes its time, and many clusters begin alike.
_READ: Final[dict[tuple[bytes, type[CustomRules]], list[Kind]]] = {}
_MOST_READ: Final = 4


def _read_kinds(body: bytes, rules: type[CustomRules]) -> list[Kind]:
    """The kinds of a stored definition."""
    found = _READ.get((body, rules))
    if found is None:
        found = kinds_of(msgspec.json.decode(body), rules)
        if len(_READ) >= _MOST_READ:
            del _READ[next(iter(_READ))]
        _READ[body, rules] = found
    return found


def _rank(version: str) -> tuple[int, int, int]:
    """v2 before v1, v1 before v1beta1, that before v1alpha1, and all before anything else."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (-1, 0, 0)
    stage = {None: 2, "beta": 1, "alpha": 0}[found[2]]
    return (stage, int(found[1]), int(found[3] or 0))


class Definitions:
    """Keeps what is served in step with the definitions that are stored."""

    def __init__(self, kinds: Registry, special: Mapping[str, type[CustomRules]]) -> None:
        self._kinds = kinds
        self._special = special  # definitions whose objects have more rules than a schema can say
        self._made: dict[str, list[Kind]] = {}

    def define(self, name: str, body: bytes) -> None:
        """Serve what a new or changed definition says."""
        made = _read_kinds(body, self._special.get(name, CustomRules))
        self.forget(name)
        self._made[name] = made
        for kind in made:
            self._kinds.add(kind)

    def forget(self, name: str) -> list[Kind]:
        """Serve it no longer; returns what it had made."""
        made = self._made.pop(name, [])
        for kind in made:
            self._kinds.remove(kind)
        return made
