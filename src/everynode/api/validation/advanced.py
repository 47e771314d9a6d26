"""Rules of the Advanced DaemonSet's own fields, each in Python and in CEL.

The CustomResourceDefinition is built from the same table, so that the API server refuses the same
objects at the same fields with the same messages while Everynode does not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.int_or_percent import MAX_INT32, NEGATIVE, NOT_A_PERCENTAGE, OVER_100, TOO_LARGE
from everynode.api.nulls import drop_nulls
from everynode.api.validation.field_errors import (
    AT_LEAST_0,
    FORBIDDEN,
    IMMUTABLE,
    INVALID,
    OMITTED,
    REQUIRED,
    FieldErrors,
    Object,
    forbidden,
    invalid,
    is_int,
    required,
)
from everynode.api.validation.names import pattern_rule
from everynode.api.validation.selector import (
    EMPTY_SELECTOR,
    EXISTS_HAS_NO_VALUES,
    IN_NEEDS_VALUES,
    LABELS_DIFFER,
    UNKNOWN_OPERATOR,
)

FieldPath = tuple[str, ...]  # names of fields; [] stands for every item of a list

SELECTOR: Final[FieldPath] = ("spec", "selector")
STRATEGY: Final[FieldPath] = ("spec", "updateStrategy")
ROLLING: Final[FieldPath] = (*STRATEGY, "rollingUpdate")

QUALIFIED_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE: Final = (
    "a valid label key "
    + pattern_rule(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character",
        QUALIFIED_NAME,
        "MyName",
        "my.name",
        "123-abc",
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_RULE: Final = pattern_rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    f"({QUALIFIED_NAME})?",
    "MyValue",
    "my_value",
    "12345",
)
# The lengths are in the patterns: 63 for a name and a value.
_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SHORT_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY_PATTERN: Final = rf"^({_PART}([.]{_PART})*/)?{_SHORT_NAME}$"
VALUE_PATTERN: Final = f"^({_SHORT_NAME})?$"
PERCENT: Final = "^[0-9]+%$"
AT_MOST_ALL: Final = "^0*(100|[0-9]{1,2})%$"
ZERO_PERCENT: Final = "^0+%$"
NINE_DIGITS: Final = "^0*[0-9]{1,9}%$"

TYPES_DIFFER: Final = "must be the same as rollingUpdateType"
SURGE_AND_UNAVAILABLE: Final = "may not be set when maxUnavailable is non-zero"
NO_SURGE_IN_PLACE: Final = "may not be set when rollingUpdateType is InPlaceIfPossible"
BOTH_ZERO: Final = "cannot be 0 when maxSurge is 0"
NO_DEADLINE: Final = "activeDeadlineSeconds in DaemonSet is not Supported"
NO_UPDATE_HOOK: Final = "a DaemonSet has no in-place update hook, only preDelete"


class Rule(msgspec.Struct, frozen=True):
    """One rule: the path of the value, the predicate in Python and in CEL, and the message."""

    at: FieldPath
    holds: Callable[[Any], bool]
    cel: str
    message: str
    field: FieldPath = ()  # the field that the error names, below `at`
    reason: str = INVALID

    def error(self, path: str, value: object) -> FieldError:
        """The error of a value that breaks the rule; `path` is that of the value."""
        here = ".".join((path, *self.field))
        if self.reason == REQUIRED:
            return required(here, self.message)
        if self.reason == FORBIDDEN:
            return forbidden(here, self.message)
        printed = OMITTED if isinstance(value, dict | list) else value
        return invalid(here, printed, self.message)


def check_own_fields(daemonset: Object) -> FieldErrors:
    """Errors that the definition's rules find; types checked, nulls removed."""
    for at, rules in _RULES_BY_PATH.items():
        for path, value in _values_at(daemonset, at):
            yield from (rule.error(path, value) for rule in rules if not rule.holds(value))


def check_selector_unchanged(old: Object, new: Object) -> FieldErrors:
    """An error if the selector has changed."""
    before, after = (drop_nulls(each)["spec"]["selector"] for each in (old, new))
    if before != after:
        yield IMMUTABLE_SELECTOR.error("spec.selector", {})


def _values_at(value: Any, at: FieldPath, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values at a path, each with its full path; none if a field is absent."""
    if not at:
        yield path, value
    elif at[0] == "[]":
        for index, item in enumerate(value):
            yield from _values_at(item, at[1:], f"{path}[{index}]")
    elif value.get(at[0]) is not None:
        yield from _values_at(value[at[0]], at[1:], f"{path}.{at[0]}" if path else at[0])


def _matches(pattern: str) -> Callable[[Any], bool]:
    # In CEL $ is the end of the text; in Python it also matches before a final newline.
    compiled = re.compile(pattern.replace("$", r"\Z"))
    return lambda text: compiled.match(text) is not None


_is_percentage: Final = _matches(PERCENT)
_is_at_most_all: Final = _matches(AT_MOST_ALL)
_is_zero_percent: Final = _matches(ZERO_PERCENT)
_has_nine_digits: Final = _matches(NINE_DIGITS)


# --- Amounts -----------------------------------------------------------------------------------


def _not_negative(value: Any) -> bool:
    return not is_int(value) or value >= 0


def _percentage(value: Any) -> bool:
    return not isinstance(value, str) or _is_percentage(value)


def _at_most_all(value: Any) -> bool:
    if not isinstance(value, str) or not _is_percentage(value):
        return True
    return _is_at_most_all(value)


def _fits_int32(value: Any) -> bool:
    if isinstance(value, str):
        return not _is_percentage(value) or _has_nine_digits(value)
    return not is_int(value) or value <= MAX_INT32


def _fits_as_number(value: Any) -> bool:
    return isinstance(value, str) or _fits_int32(value)


def _number_rules(at: FieldPath) -> Iterator[Rule]:
    yield Rule(at, _not_negative, "self >= 0", AT_LEAST_0)
    yield Rule(at, _fits_int32, f"self <= {MAX_INT32}", TOO_LARGE)


def _amount_rules(at: FieldPath, *, at_most_all: bool = True) -> Iterator[Rule]:
    yield Rule(at, _not_negative, "type(self) != int || int(self) >= 0", NEGATIVE)
    percent = f"string(self).matches('{PERCENT}')"
    yield Rule(at, _percentage, f"type(self) != string || {percent}", NOT_A_PERCENTAGE)
    many = "" if at_most_all else f" && (!{percent} || string(self).matches('{NINE_DIGITS}'))"
    fits = f"type(self) == int ? int(self) <= {MAX_INT32} : true{many}"
    yield Rule(at, _fits_int32 if not at_most_all else _fits_as_number, fits, TOO_LARGE)
    if at_most_all:
        few = f"string(self).matches('{AT_MOST_ALL}')"
        yield Rule(at, _at_most_all, f"type(self) != string || !{percent} || {few}", OVER_100)


# --- The rolling update ------------------------------------------------------------------------


def is_zero(amount: Any) -> bool:
    """Whether an amount is zero or absent."""
    if isinstance(amount, str):
        return _is_zero_percent(amount)
    return amount is None or amount == 0


def rolling_type(rolling: Object) -> str:
    """The rolling update type; the v1alpha1 spelling `type` counts if the other is absent."""
    how = rolling.get("rollingUpdateType") or rolling.get("type") or "Standard"
    return how if isinstance(how, str) else "Standard"


def _surges(rolling: Object) -> bool:
    """Whether a node may get a second pod; with type Surging maxSurge is 1 by default."""
    if rolling.get("maxSurge") is None:
        return rolling_type(rolling) == "Surging"
    return not is_zero(rolling["maxSurge"])


def _allows_unavailable(rolling: Object) -> bool:
    """Whether a node may be unavailable; maxUnavailable is 1 by default."""
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        return rolling_type(rolling) != "Surging"
    return not is_zero(rolling.get("maxUnavailable"))


def _if_rolling_update(holds: Callable[[Object], bool]) -> Callable[[Object], bool]:
    """Turn a predicate of rollingUpdate into one of updateStrategy; true if there is none."""

    def of_strategy(strategy: Object) -> bool:
        rolling = strategy.get("rollingUpdate")
        if strategy.get("type", "RollingUpdate") != "RollingUpdate" or rolling is None:
            return True
        return holds(rolling)

    return of_strategy


_R: Final = "self.rollingUpdate"
_CEL_NOT_ROLLING: Final = f"(has(self.type) && self.type != 'RollingUpdate') || !has({_R})"
_CEL_TYPE: Final = (
    f"(has({_R}.rollingUpdateType) ? {_R}.rollingUpdateType : "
    f"has({_R}.type) ? {_R}.type : 'Standard')"
)


def _cel_is_nonzero(field: str) -> str:
    """CEL: the amount is set and not zero."""
    amount = f"{_R}.{field}"
    zero = f"string({amount}).matches('{ZERO_PERCENT}')"
    return f"(has({amount}) && (type({amount}) == int ? int({amount}) != 0 : !{zero}))"


_CEL_SURGES: Final = (
    f"(has({_R}.maxSurge) ? {_cel_is_nonzero('maxSurge')} : {_CEL_TYPE} == 'Surging')"
)
_CEL_ALLOWS_UNAVAILABLE: Final = (
    f"(has({_R}.maxUnavailable) || has({_R}.maxSurge) ? {_cel_is_nonzero('maxUnavailable')} : "
    f"{_CEL_TYPE} != 'Surging')"
)

_ROLLING_RULES: Final = (
    Rule(
        ROLLING,
        lambda r: rolling_type(r) == (r.get("type") or rolling_type(r)),
        "!has(self.type) || !has(self.rollingUpdateType) || self.type == self.rollingUpdateType",
        TYPES_DIFFER,
        field=("type",),
    ),
    Rule(
        STRATEGY,
        _if_rolling_update(lambda r: not (_allows_unavailable(r) and _surges(r))),
        f"{_CEL_NOT_ROLLING} || !({_CEL_ALLOWS_UNAVAILABLE} && {_CEL_SURGES})",
        SURGE_AND_UNAVAILABLE,
        field=("rollingUpdate", "maxSurge"),
    ),
    Rule(
        STRATEGY,
        _if_rolling_update(lambda r: _allows_unavailable(r) or _surges(r)),
        f"{_CEL_NOT_ROLLING} || {_CEL_ALLOWS_UNAVAILABLE} || {_CEL_SURGES}",
        BOTH_ZERO,
        field=("rollingUpdate", "maxUnavailable"),
        reason=REQUIRED,
    ),
    Rule(
        STRATEGY,
        _if_rolling_update(lambda r: not (_surges(r) and rolling_type(r) == "InPlaceIfPossible")),
        f"{_CEL_NOT_ROLLING} || !({_CEL_SURGES} && {_CEL_TYPE} == 'InPlaceIfPossible')",
        NO_SURGE_IN_PLACE,
        field=("rollingUpdate", "maxSurge"),
    ),
)


# --- Selectors ---------------------------------------------------------------------------------


_good_key: Final = _matches(KEY_PATTERN)
_good_value: Final = _matches(VALUE_PATTERN)


def _key(text: str) -> bool:
    return _good_key(text) and text.find("/") <= 253


def _selector_rules(at: FieldPath) -> Iterator[Rule]:
    key = f"matches('{KEY_PATTERN}')"
    value = f"matches('{VALUE_PATTERN}')"
    labels, expression = (*at, "matchLabels"), (*at, "matchExpressions", "[]")
    yield Rule(
        labels,
        lambda pairs: all(_key(name) for name in pairs),
        f"self.all(k, k.{key} && k.indexOf('/') <= 253)",
        _KEY_RULE,
    )
    yield Rule(
        labels,
        lambda pairs: all(_good_value(text) for text in pairs.values()),
        f"self.all(k, self[k].{value})",
        _VALUE_RULE,
    )
    yield Rule((*expression, "key"), _key, f"self.{key} && self.indexOf('/') <= 253", _KEY_RULE)
    operators = ("In", "NotIn", "Exists", "DoesNotExist")
    yield Rule(
        (*expression, "operator"),
        lambda operator: operator in operators,
        f"self in {list(operators)}",
        UNKNOWN_OPERATOR,
    )
    yield Rule(
        expression,
        lambda e: e["operator"] not in ("In", "NotIn") or bool(e.get("values")),
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
        IN_NEEDS_VALUES,
        field=("values",),
        reason=REQUIRED,
    )
    yield Rule(
        expression,
        lambda e: e["operator"] not in ("Exists", "DoesNotExist") or not e.get("values"),
        "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || "
        "size(self.values) == 0",
        EXISTS_HAS_NO_VALUES,
        field=("values",),
        reason=FORBIDDEN,
    )


def _selects_own_pods(spec: Object) -> bool:
    template = spec.get("template")
    if template is None:
        return True  # only the DaemonSet's own fields are being checked
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec["selector"]
    return all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(_matches_expression(each, labels) for each in selector.get("matchExpressions") or ())


def _matches_expression(expression: Object, labels: dict[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or ()
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    return operator != "DoesNotExist" or key not in labels


_L: Final = "self.template.metadata.labels"
_CEL_LABELLED: Final = f"(has(self.template.metadata) && has({_L}))"


def _cel_has(key: str) -> str:
    return f"({_CEL_LABELLED} && {key} in {_L})"


_CEL_EXPRESSION: Final = (
    f"e.operator == 'In' ? {_cel_has('e.key')} && has(e.values) && {_L}[e.key] in e.values : "
    f"e.operator == 'NotIn' ? !{_cel_has('e.key')} || !has(e.values) || "
    f"!({_L}[e.key] in e.values) : "
    f"e.operator == 'Exists' ? {_cel_has('e.key')} : "
    f"e.operator == 'DoesNotExist' ? !{_cel_has('e.key')} : true"
)
_CEL_SELECTS: Final = (
    f"(!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, {_cel_has('k')} && "
    f"{_L}[k] == self.selector.matchLabels[k])) && (!has(self.selector.matchExpressions) || "
    f"self.selector.matchExpressions.all(e, {_CEL_EXPRESSION}))"
)

IMMUTABLE_SELECTOR: Final = Rule(SELECTOR, lambda _: True, "self == oldSelf", IMMUTABLE)

RULES: Final = (
    *_selector_rules(SELECTOR),
    Rule(
        SELECTOR,
        lambda s: bool(s.get("matchLabels") or s.get("matchExpressions")),
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || "
        "(has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        EMPTY_SELECTOR,
    ),
    IMMUTABLE_SELECTOR,
    Rule(
        ("spec",),
        _selects_own_pods,
        _CEL_SELECTS,
        LABELS_DIFFER,
        field=("template", "metadata", "labels"),
    ),
    Rule(
        ("spec", "template", "spec"),
        lambda spec: spec.get("activeDeadlineSeconds") is None,
        "!has(self.activeDeadlineSeconds)",
        NO_DEADLINE,
        field=("activeDeadlineSeconds",),
        reason=FORBIDDEN,
    ),
    *_number_rules(("spec", "minReadySeconds")),
    *_number_rules(("spec", "revisionHistoryLimit")),
    *_amount_rules(("spec", "burstReplicas"), at_most_all=False),
    *_amount_rules((*ROLLING, "maxUnavailable")),
    *_amount_rules((*ROLLING, "maxSurge")),
    *_amount_rules((*ROLLING, "partition")),
    *_selector_rules((*ROLLING, "selector")),
    *_ROLLING_RULES,
    Rule(
        ("spec", "lifecycle"),
        lambda lifecycle: lifecycle.get("inPlaceUpdate") is None,
        "!has(self.inPlaceUpdate)",
        NO_UPDATE_HOOK,
        field=("inPlaceUpdate",),
        reason=FORBIDDEN,
    ),
)

# Grouped by path, so that each path is resolved once.
_RULES_BY_PATH: Final[dict[FieldPath, list[Rule]]] = {}
for _rule in RULES:
    _RULES_BY_PATH.setdefault(_rule.at, []).append(_rule)
