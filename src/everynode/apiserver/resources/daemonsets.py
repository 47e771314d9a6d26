"""Strategies of native and Advanced DaemonSets."""

from __future__ import annotations

from typing import Any

from everynode.api import keys
from everynode.api.daemonset import FieldError
from everynode.api.defaults import default_daemonset
from everynode.api.validation import native
from everynode.api.validation.daemonset import (
    validate_advanced_on_server,
    validate_daemonset,
    validate_update,
)
from everynode.apiserver.errors import bad_request
from everynode.apiserver.resources.custom_resources import CustomResourceStrategy
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]


class AdvancedDaemonSetStrategy(CustomResourceStrategy):
    """Advanced DaemonSets: the schema of the CRD and its CEL rules, both checked in Python."""

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Validate by schema and rules."""
        return _outside_metadata(validate_advanced_on_server(obj))

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Validate the same, and that the selector stays."""
        return _outside_metadata(validate_advanced_on_server(new, old))


class DaemonSetStrategy(ResourceStrategy):
    """Native DaemonSets: an annotation counts the changes of the template."""

    status = True
    generation = True

    def default(self, obj: Object) -> Object:
        """Set the defaults of update strategy and template."""
        return default_daemonset(obj)

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Validate as kube-apiserver does."""
        return _outside_metadata(validate_daemonset(obj))

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Validate the same, and that the selector stays."""
        return _outside_metadata(validate_update(old, new))

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        """Check that counters are not negative and collisionCount does not decrease."""
        before, after = old.get("status") or {}, new.get("status") or {}
        return list(native.check_status_update(before, after))

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start generation and template generation at 1."""
        super().prepare_create(obj, context)
        obj["status"] = _zero_status()
        _set_template_generation(obj, max(1, template_generation(obj)))

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Count a change of the template; clients cannot set the template generation."""
        super().prepare_update(new, old, context)
        count = template_generation(old)
        if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
            count += 1
        _set_template_generation(new, count)

    def prepare_status(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Restore the template generation."""
        super().prepare_status(new, old, context)
        _set_template_generation(new, template_generation(old))


def _outside_metadata(faults: list[FieldError]) -> list[FieldError]:
    """Drop faults of the metadata, which is validated for all kinds elsewhere."""
    return [fault for fault in faults if not fault.path.startswith("metadata")]


def template_generation(obj: Object) -> int:
    """Return the template generation of an object; 0 if it has none."""
    text = (obj["metadata"].get("annotations") or {}).get(keys.TEMPLATE_GENERATION, "0")
    try:
        return int(text)
    except ValueError:
        raise bad_request(
            'DaemonSet in version "v1" cannot be handled as a DaemonSet: '
            f'strconv.ParseInt: parsing "{text}": invalid syntax'
        ) from None


def _set_template_generation(obj: Object, count: int) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, keys.TEMPLATE_GENERATION: str(count)}


def _zero_status() -> Object:
    return {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
