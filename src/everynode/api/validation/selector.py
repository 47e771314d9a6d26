"""Validation of label selectors: operators, values, keys."""

from __future__ import annotations

from everynode.api.daemonset import LabelSelector, LabelSelectorRequirement
from everynode.api.selector import SelectorError, compile_selector
from everynode.api.selector import label_key_errors as key_faults
from everynode.api.selector import label_value_errors as value_faults
from everynode.api.validation.accessors import pairs, sections, text, texts
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    forbidden,
    invalid,
    invalid_each,
    required,
)
from everynode.api.validation.metadata import check_labels

IN_NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
EXISTS_HAS_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
UNKNOWN_OPERATOR = "not a valid selector operator"
EMPTY_SELECTOR = "empty selector is invalid for daemonset"
LABELS_DIFFER = "`selector` does not match template `labels`"


def check_selector(selector: Object, path: str) -> FieldErrors:
    """Errors in a label selector."""
    yield from check_labels(pairs(selector, "matchLabels"), f"{path}.matchLabels")
    for here, expression in sections(selector, "matchExpressions", path):
        yield from check_values(expression, here)
        yield from check_key(expression, here)
        for index, value in enumerate(texts(expression, "values")):
            yield from invalid_each(f"{here}.values[{index}]", value, value_faults(value))


def check_values(expression: Object, path: str) -> FieldErrors:
    """An error if the values of an expression do not fit its operator."""
    operator, values = text(expression, "operator"), texts(expression, "values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", IN_NEEDS_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", EXISTS_HAS_NO_VALUES)
    else:
        yield invalid(f"{path}.operator", operator, UNKNOWN_OPERATOR)


def check_key(expression: Object, path: str) -> FieldErrors:
    """Errors in the key of an expression."""
    key = text(expression, "key")
    yield from invalid_each(f"{path}.key", key, key_faults(key))


def selector_matches(selector: Object, labels: dict[str, str]) -> bool | None:
    """Whether the selector matches the labels; None if the selector is invalid."""
    expressions = sections(selector, "matchExpressions", "")
    read = LabelSelector(
        match_labels=pairs(selector, "matchLabels"),
        match_expressions=tuple(
            LabelSelectorRequirement(text(e, "key"), text(e, "operator"), tuple(texts(e, "values")))
            for _, e in expressions
        ),
    )
    try:
        return compile_selector(read).matches(labels)
    except SelectorError:
        return None
