"""Validation of the native DaemonSet's own fields."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.daemonset import IntOrPercent
from everynode.api.int_or_percent import NOT_A_PERCENTAGE, OVER_100, parse_int_or_percent
from everynode.api.types import UPDATE_TYPES
from everynode.api.validation.accessors import pairs, section
from everynode.api.validation.field_errors import (
    IMMUTABLE,
    FieldErrors,
    Object,
    at_least_zero,
    invalid,
    required,
    unsupported,
)
from everynode.api.validation.selector import (
    EMPTY_SELECTOR,
    LABELS_DIFFER,
    check_selector,
    selector_matches,
)


def check_native_fields(spec: Object, path: str = "spec") -> FieldErrors:
    """Errors in all fields but the template; types checked and defaults applied."""
    selector = section(spec, "selector")
    if selector is not None:
        yield from check_selector(selector, f"{path}.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid(f"{path}.selector", selector, EMPTY_SELECTOR)
    yield from at_least_zero(f"{path}.minReadySeconds", spec.get("minReadySeconds"))
    yield from _check_strategy(section(spec, "updateStrategy") or {}, f"{path}.updateStrategy")
    yield from at_least_zero(f"{path}.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def check_labels_selected(spec: Object, path: str = "spec") -> FieldErrors:
    """An error if the selector does not match the labels of the template."""
    metadata = section(section(spec, "template") or {}, "metadata") or {}
    labels = pairs(metadata, "labels")
    selector = section(spec, "selector")
    # An absent selector selects nothing; an invalid one has errors of its own.
    if selector is None or selector_matches(selector, labels) is False:
        yield invalid(f"{path}.template.metadata.labels", labels or None, LABELS_DIFFER)


def check_selector_unchanged(old: Object, new: Object, path: str = "spec") -> FieldErrors:
    """An error if the selector has changed."""
    before, after = section(old, "selector") or {}, section(new, "selector") or {}
    for name in ("matchLabels", "matchExpressions"):
        if (before.get(name) or None) != (after.get(name) or None):
            yield invalid(f"{path}.selector", after, IMMUTABLE)
            return


def check_status(status: Object, path: str = "status") -> FieldErrors:
    """Errors in a status: no counter is below zero."""
    for name in sorted(status):
        if name != "conditions":
            yield from at_least_zero(f"{path}.{name}", status[name])


def check_status_update(old: Object, new: Object, path: str = "status") -> FieldErrors:
    """Errors in an update of the status: collisionCount never decreases."""
    yield from check_status(new, path)
    if (new.get("collisionCount") or 0) < (old.get("collisionCount") or 0):
        count = new.get("collisionCount") or 0
        yield invalid(f"{path}.collisionCount", count, "cannot be decremented")


def _check_strategy(strategy: Object, path: str) -> FieldErrors:
    how = strategy.get("type")
    if how not in UPDATE_TYPES:
        yield unsupported(path, _go_strategy(strategy), UPDATE_TYPES)
    rolling = section(strategy, "rollingUpdate")
    if how != "RollingUpdate":
        return
    if rolling is None:
        yield required(f"{path}.rollingUpdate")
        return
    here = f"{path}.rollingUpdate"
    names = ("maxUnavailable", "maxSurge")
    for name in names:
        yield from _check_amount(rolling.get(name), f"{here}.{name}")
    for name in names:
        yield from _check_at_most_all(rolling.get(name), f"{here}.{name}")
    takes_down, surges = (_is_nonzero(rolling.get(name)) for name in names)
    if takes_down and surges:
        detail = "may not be set when maxUnavailable is non-zero"
        yield invalid(f"{here}.maxSurge", rolling["maxSurge"], detail)
    elif not takes_down and not surges:
        yield required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _go_strategy(strategy: Object) -> msgspec.Raw:
    """The strategy as the API server prints it here: with the names of the Go struct."""
    rolling = section(strategy, "rollingUpdate")
    inside = rolling and {
        "MaxUnavailable": rolling.get("maxUnavailable") or 0,
        "MaxSurge": rolling.get("maxSurge") or 0,
    }
    printed = {"Type": strategy.get("type"), "RollingUpdate": inside}
    return msgspec.Raw(msgspec.json.encode(printed))


def _check_amount(value: Any, path: str) -> FieldErrors:
    error = parse_int_or_percent(value if value is not None else 0)
    if isinstance(error, str):
        yield invalid(path, value, error)


def _check_at_most_all(value: Any, path: str) -> FieldErrors:
    error = parse_int_or_percent(value if value is not None else 0, at_most_all=True)
    if error == OVER_100:
        yield invalid(path, value, OVER_100)


def _is_nonzero(value: Any) -> bool:
    """Whether an amount is not zero; a string that is not a percentage counts as zero."""
    amount = parse_int_or_percent(value if value is not None else 0)
    if isinstance(amount, IntOrPercent):
        return amount.value != 0
    return amount != NOT_A_PERCENTAGE
