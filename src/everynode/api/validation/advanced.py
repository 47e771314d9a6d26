"""The rules on the Advanced DaemonSet's own fields, each once for Python and once in CEL.

The CustomResourceDefinition is built from the same table, so that the API server refuses the same
objects at the same fields with the same words while nothing of ours is running.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from everynode.api.amount import NEGATIVE, NOT_A_PERCENTAGE, OVER_100, TOO_LARGE
from everynode.api.daemonset import Fault
from everynode.api.validation.faults import (
    AT_LEAST_0,
    FORBIDDEN,
    IMMUTABLE,
    INVALID,
    OMITTED,
    REQUIRED,
    Faults,
    Object,
    forbidden,
    invalid,
    is_int,
    required,
)
from everynode.api.validation.names import pattern_rule
from everynode.api.validation.selector import (
    EXISTS_HAS_NO_VALUES,
    IN_NEEDS_VALUES,
    UNKNOWN_OPERATOR,
)

Where = tuple[str, ...]  # names of fields; [] stands for every item of a list

SELECTOR: Final[Where] = ("spec", "selector")
STRATEGY: Final[Where] = ("spec", "updateStrategy")
ROLLING: Final[Where] = (*STRATEGY, "rollingUpdate")

NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE: Final = (
    "a valid label key "
    + pattern_rule(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character",
        NAME,
        "MyName",
        "my.name",
        "123-abc",
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_RULE: Final = pattern_rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    f"({NAME})?",
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
MOST: Final = 2**31 - 1

SPELLINGS_DIFFER: Final = "must be the same as rollingUpdateType"
NO_SURGE_BESIDE: Final = "may not be set when maxUnavailable is non-zero"
NO_SURGE_IN_PLACE: Final = "may not be set when rollingUpdateType is InPlaceIfPossible"
BOTH_ZERO: Final = "cannot be 0 when maxSurge is 0"
EMPTY_SELECTOR: Final = "empty selector is invalid for daemonset"
LABELS_DIFFER: Final = "`selector` does not match template `labels`"
NO_UPDATE_HOOK: Final = "a DaemonSet has no in-place update hook, only preDelete"


class Rule(msgspec.Struct, frozen=True):
    """One rule: where it applies, how it is asked in Python and in CEL, and what it says."""

    at: Where
    holds: Callable[[Any], bool]
    cel: str
    message: str
    field: Where = ()  # the field to blame, below `at`
    reason: str = INVALID

    def fault(self, path: str, value: object) -> Fault:
        """The fault of a value that breaks the rule, at the path of the value."""
        here = ".".join((path, *self.field))
        if self.reason == REQUIRED:
            return required(here, self.message)
        if self.reason == FORBIDDEN:
            return forbidden(here, self.message)
        told = OMITTED if isinstance(value, dict | list) else value
        return invalid(here, told, self.message)


def check_own_fields(daemonset: Object) -> Faults:
    """Faults in all fields but metadata and template; types checked, nulls removed."""
    for at, rules in _BY_PLACE.items():
        for path, value in _values(daemonset, at):
            yield from (rule.fault(path, value) for rule in rules if not rule.holds(value))


def check_selector_unchanged(old: Object, new: Object) -> Faults:
    """A fault if the selector is another one than before."""
    before, after = (without_nulls(each)["spec"]["selector"] for each in (old, new))
    if before != after:
        yield IMMUTABLE_SELECTOR.fault("spec.selector", {})


def without_nulls(value: Any) -> Any:
    """The value without fields that are null: the API server drops these."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _values(value: Any, at: Where, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is found at a place, with its path; nothing where a field is absent."""
    if not at:
        yield path, value
    elif at[0] == "[]":
        for index, item in enumerate(value):
            yield from _values(item, at[1:], f"{path}[{index}]")
    elif value.get(at[0]) is not None:
        yield from _values(value[at[0]], at[1:], f"{path}.{at[0]}" if path else at[0])


def _matches(pattern: str) -> Callable[[Any], bool]:
    # At the API server $ is the very end; here it would let a newline pass.
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


def _fits(value: Any) -> bool:
    if isinstance(value, str):
        return not _is_percentage(value) or _has_nine_digits(value)
    return not is_int(value) or value <= MOST


def _fits_as_number(value: Any) -> bool:
    return isinstance(value, str) or _fits(value)


def _number_rules(at: Where) -> Iterator[Rule]:
    yield Rule(at, _not_negative, "self >= 0", AT_LEAST_0)
    yield Rule(at, _fits, f"self <= {MOST}", TOO_LARGE)


def _amount_rules(at: Where, *, at_most_all: bool = True) -> Iterator[Rule]:
    yield Rule(at, _not_negative, "type(self) != int || int(self) >= 0", NEGATIVE)
    percent = f"string(self).matches('{PERCENT}')"
    yield Rule(at, _percentage, f"type(self) != string || {percent}", NOT_A_PERCENTAGE)
    many = "" if at_most_all else f" && (!{percent} || string(self).matches('{NINE_DIGITS}'))"
    fits = f"type(self) == int ? int(self) <= {MOST} : true{many}"
    yield Rule(at, _fits if not at_most_all else _fits_as_number, fits, TOO_LARGE)
    if at_most_all:
        few = f"string(self).matches('{AT_MOST_ALL}')"
        yield Rule(at, _at_most_all, f"type(self) != string || !{percent} || {few}", OVER_100)


# --- The rolling update ------------------------------------------------------------------------


def is_zero(amount: Any) -> bool:
    """Whether an amount, or the absence of one, means no node."""
    if isinstance(amount, str):
        return _is_zero_percent(amount)
    return amount is None or amount == 0


def rolling_type(rolling: Object) -> str:
    """How a node is updated, by whichever of the two spellings is used."""
    how = rolling.get("rollingUpdateType") or rolling.get("type") or "Standard"
    return how if isinstance(how, str) else "Standard"


def _surges(rolling: Object) -> bool:
    """Whether any node gets a second pod, with the defaults that Surging brings."""
    if rolling.get("maxSurge") is None:
        return rolling_type(rolling) == "Surging"
    return not is_zero(rolling["maxSurge"])


def _takes_down(rolling: Object) -> bool:
    """Whether any node may lose its pod, with the default of 1 where nothing is said."""
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        return rolling_type(rolling) != "Surging"
    return not is_zero(rolling.get("maxUnavailable"))


def _when_rolling(holds: Callable[[Object], bool]) -> Callable[[Object], bool]:
    """The rule asked of an update strategy, where it rolls and says how."""

    def asked(strategy: Object) -> bool:
        rolling = strategy.get("rollingUpdate")
        if strategy.get("type", "RollingUpdate") != "RollingUpdate" or rolling is None:
            return True
        return holds(rolling)

    return asked


_R: Final = "self.rollingUpdate"
_CEL_IDLE: Final = f"(has(self.type) && self.type != 'RollingUpdate') || !has({_R})"
_CEL_TYPE: Final = (
    f"(has({_R}.rollingUpdateType) ? {_R}.rollingUpdateType : "
    f"has({_R}.type) ? {_R}.type : 'Standard')"
)


def _cel_some(field: str) -> str:
    """CEL that tells whether an amount is there and not zero."""
    amount = f"{_R}.{field}"
    zero = f"string({amount}).matches('{ZERO_PERCENT}')"
    return f"(has({amount}) && (type({amount}) == int ? int({amount}) != 0 : !{zero}))"


_CEL_SURGES: Final = f"(has({_R}.maxSurge) ? {_cel_some('maxSurge')} : {_CEL_TYPE} == 'Surging')"
_CEL_TAKES: Final = (
    f"(has({_R}.maxUnavailable) || has({_R}.maxSurge) ? {_cel_some('maxUnavailable')} : "
    f"{_CEL_TYPE} != 'Surging')"
)

_ROLLING_RULES: Final = (
    Rule(
        ROLLING,
        lambda r: rolling_type(r) == (r.get("type") or rolling_type(r)),
        "!has(self.type) || !has(self.rollingUpdateType) || self.type == self.rollingUpdateType",
        SPELLINGS_DIFFER,
        field=("type",),
    ),
    Rule(
        STRATEGY,
        _when_rolling(lambda r: not (_takes_down(r) and _surges(r))),
        f"{_CEL_IDLE} || !({_CEL_TAKES} && {_CEL_SURGES})",
        NO_SURGE_BESIDE,
        field=("rollingUpdate", "maxSurge"),
    ),
    Rule(
        STRATEGY,
        _when_rolling(lambda r: _takes_down(r) or _surges(r)),
        f"{_CEL_IDLE} || {_CEL_TAKES} || {_CEL_SURGES}",
        BOTH_ZERO,
        field=("rollingUpdate", "maxUnavailable"),
        reason=REQUIRED,
    ),
    Rule(
        STRATEGY,
        _when_rolling(lambda r: not (_surges(r) and rolling_type(r) == "InPlaceIfPossible")),
        f"{_CEL_IDLE} || !({_CEL_SURGES} && {_CEL_TYPE} == 'InPlaceIfPossible')",
        NO_SURGE_IN_PLACE,
        field=("rollingUpdate", "maxSurge"),
    ),
)


# --- Selectors ---------------------------------------------------------------------------------


_good_key: Final = _matches(KEY_PATTERN)
_good_value: Final = _matches(VALUE_PATTERN)


def _key(text: str) -> bool:
    return _good_key(text) and text.find("/") <= 253


def _selector_rules(at: Where) -> Iterator[Rule]:
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
        return True  # only the DaemonSet's own fields are being looked at
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec["selector"]
    return all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(_selected(each, labels) for each in selector.get("matchExpressions") or ())


def _selected(expression: Object, labels: dict[str, str]) -> bool:
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

# Places are walked to once, whatever the number of rules there.
_BY_PLACE: Final[dict[Where, list[Rule]]] = {}
for _rule in RULES:
    _BY_PLACE.setdefault(_rule.at, []).append(_rule)
