"""Validation of scheduling fields: tolerations, affinity, topology spread constraints."""

from __future__ import annotations

from typing import Final

from everynode.api.selector import label_key_errors, label_value_errors
from everynode.api.taints import EFFECTS
from everynode.api.validation.accessors import number, section, sections, text, texts
from everynode.api.validation.field_errors import (
    GREATER_THAN_ZERO,
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
    unsupported,
)
from everynode.api.validation.names import dns_label, dns_subdomain
from everynode.api.validation.selector import (
    UNKNOWN_OPERATOR,
    check_key,
    check_selector,
    check_values,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


# --- Tolerations -------------------------------------------------------------------------------


def check_tolerations(spec: Object, path: str) -> FieldErrors:
    """Errors in the tolerations of a pod."""
    for here, toleration in sections(spec, "tolerations", path):
        yield from _check_toleration(toleration, here)


def _check_toleration(toleration: Object, path: str) -> FieldErrors:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    effect = text(toleration, "effect")
    if key:
        yield from invalid_each(f"{path}.key", key, label_key_errors(key))
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        yield invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    yield from _check_operator(toleration, f"{path}.operator")
    if effect and effect not in EFFECTS:
        yield unsupported(f"{path}.effect", effect, EFFECTS)


def _check_operator(toleration: Object, path: str) -> FieldErrors:
    operator, value = text(toleration, "operator"), text(toleration, "value")
    if operator in ("", "Equal"):
        wrong = label_value_errors(value)
        if wrong:
            yield invalid(path, value, ";".join(wrong))
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        # Known, but behind a feature gate that is off.
        yield unsupported(path, operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield unsupported(path, operator, ("Equal", "Exists"))


# --- Affinity ----------------------------------------------------------------------------------


def check_affinity(spec: Object, path: str) -> FieldErrors:
    """Errors in the affinity of a pod to nodes and to other pods."""
    affinity = section(spec, "affinity")
    if affinity is None:
        return
    node = section(affinity, "nodeAffinity")
    if node is not None:
        yield from _check_node_affinity(node, f"{path}.affinity.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        pods = section(affinity, name)
        if pods is not None:
            yield from _check_pod_affinity(pods, f"{path}.affinity.{name}")


def _check_node_affinity(affinity: Object, path: str) -> FieldErrors:
    wanted = section(affinity, _REQUIRED)
    if wanted is not None:
        if not wanted.get("nodeSelectorTerms"):
            detail = "must have at least one node selector term"
            yield required(f"{path}.{_REQUIRED}.nodeSelectorTerms", detail)
        for here, term in sections(wanted, "nodeSelectorTerms", f"{path}.{_REQUIRED}"):
            yield from _check_term(term, here, strict=True)
    for here, preferred in sections(affinity, _PREFERRED, path):
        yield from _check_weight(preferred, here)
        term = section(preferred, "preference") or {}
        yield from _check_term(term, f"{here}.preference", strict=False)


def _check_term(term: Object, path: str, *, strict: bool) -> FieldErrors:
    for here, expression in sections(term, "matchExpressions", path):
        if text(expression, "operator") in ("Gt", "Lt"):
            if len(texts(expression, "values")) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{here}.values", detail)
        else:
            yield from check_values(expression, here)
        yield from check_key(expression, here)
        if strict:
            for index, value in enumerate(texts(expression, "values")):
                path_of = f"{here}.values[{index}]"
                yield from invalid_each(path_of, value, label_value_errors(value))
    for here, expression in sections(term, "matchFields", path):
        yield from _check_field(expression, here)


def _check_field(expression: Object, path: str) -> FieldErrors:
    operator, values = text(expression, "operator"), texts(expression, "values")
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, UNKNOWN_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    key = text(expression, "key")
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from invalid_each(f"{path}.values[{index}]", value, dns_subdomain(value))


def _check_weight(term: Object, path: str) -> FieldErrors:
    weight = number(term, "weight") or 0
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_pod_affinity(affinity: Object, path: str) -> FieldErrors:
    for here, term in sections(affinity, _REQUIRED, path):
        yield from _check_pod_term(term, here)
    for here, preferred in sections(affinity, _PREFERRED, path):
        yield from _check_weight(preferred, here)
        term = section(preferred, "podAffinityTerm") or {}
        yield from _check_pod_term(term, f"{here}.podAffinityTerm")


def _check_pod_term(term: Object, path: str) -> FieldErrors:
    for name in ("labelSelector", "namespaceSelector"):
        selector = section(term, name)
        if selector is not None:
            yield from check_selector(selector, f"{path}.{name}")
    for namespace in texts(term, "namespaces"):
        yield from invalid_each(f"{path}.namespace", namespace, dns_label(namespace))
    yield from _check_label_keys(term, path)
    topology = text(term, "topologyKey")
    if not topology:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from invalid_each(f"{path}.topologyKey", topology, label_key_errors(topology))


def _check_label_keys(term: Object, path: str) -> FieldErrors:
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = texts(term, name)
        if keys and section(term, "labelSelector") is None:
            detail = "must not be specified when labelSelector is not set"
            yield forbidden(f"{path}.{name}", detail)
            continue
        for index, key in enumerate(keys):
            yield from invalid_each(f"{path}.{name}[{index}]", key, label_key_errors(key))
    unwanted = texts(term, "mismatchLabelKeys")
    for index, key in enumerate(texts(term, "matchLabelKeys")):
        if key in unwanted:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


# --- Spreading ---------------------------------------------------------------------------------


def check_spreading(spec: Object, path: str) -> FieldErrors:
    """Errors in the topology spread constraints of a pod."""
    constraints = list(sections(spec, "topologySpreadConstraints", path))
    kinds = [(text(c, "topologyKey"), text(c, "whenUnsatisfiable")) for _, c in constraints]
    for index, (here, constraint) in enumerate(constraints):
        yield from _check_constraint(constraint, here)
        if kinds[index] in kinds[index + 1 :]:
            named = "{" + ", ".join(kinds[index]) + "}"
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", named)


def _check_constraint(constraint: Object, path: str) -> FieldErrors:
    skew = number(constraint, "maxSkew") or 0
    if skew <= 0:
        yield invalid(f"{path}.maxSkew", skew, GREATER_THAN_ZERO)
    if not text(constraint, "topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    action = text(constraint, "whenUnsatisfiable")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = ("DoNotSchedule", "ScheduleAnyway")
        yield unsupported(f"{path}.whenUnsatisfiable", action, supported)
    domains = number(constraint, "minDomains")
    if domains is not None and domains <= 0:
        yield invalid(f"{path}.minDomains", domains, GREATER_THAN_ZERO)
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(f"{path}.minDomains", domains, detail)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in ("Honor", "Ignore"):
            yield unsupported(f"{path}.{name}", policy, ("Honor", "Ignore"))
    yield from _check_label_keys(constraint, path)
    selector = section(constraint, "labelSelector")
    if selector is not None:
        yield from check_selector(selector, f"{path}.labelSelector")
