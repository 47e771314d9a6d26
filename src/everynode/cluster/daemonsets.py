"""What is special about DaemonSets of both kinds: defaults, and the count of template changes."""

from __future__ import annotations

from typing import Any

from everynode.api import keys
from everynode.api.daemonset import Fault
from everynode.api.defaults import default_daemonset
from everynode.api.validation import native
from everynode.api.validation.daemonset import (
    validate_advanced_on_server,
    validate_daemonset,
    validate_update,
)
from everynode.cluster.customresources import CustomRules
from everynode.cluster.errors import bad_request
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]


class AdvancedDaemonSetRules(CustomRules):
    """Kruise's kind: the schema of its definition, and the rules that go with it."""

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """What schema and rules forbid."""
        return _own(validate_advanced_on_server(obj))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same, and another selector."""
        return _own(validate_advanced_on_server(new, old))


class DaemonSetRules(Rules):
    """The native kind also counts how often its template changed, in an annotation."""

    status = True
    generation = True

    def default(self, obj: Object) -> Object:
        """Fill in strategy and template."""
        return default_daemonset(obj)

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """What the native API forbids."""
        return _own(validate_daemonset(obj))

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same, and another selector."""
        return _own(validate_update(old, new))

    def status_faults(self, new: Object, old: Object) -> list[Fault]:
        """Counters below zero, and forgotten collisions."""
        before, after = old.get("status") or {}, new.get("status") or {}
        return list(native.check_status_update(before, after))

    def prepare_create(self, obj: Object, world: World) -> None:
        """Both counts start at one."""
        super().prepare_create(obj, world)
        obj["status"] = _no_status()
        _set_template_generation(obj, max(1, template_generation(obj)))

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """The template's count cannot be set, only moved."""
        super().prepare_update(new, old, world)
        count = template_generation(old)
        if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
            count += 1
        _set_template_generation(new, count)

    def prepare_status(self, new: Object, old: Object, world: World) -> None:
        """Counts are not part of the status."""
        super().prepare_status(new, old, world)
        _set_template_generation(new, template_generation(old))


def _own(faults: list[Fault]) -> list[Fault]:
    """Faults outside the metadata, which is checked for all kinds alike."""
    return [fault for fault in faults if not fault.path.startswith("metadata")]


def template_generation(obj: Object) -> int:
    """The count an object says it has; zero when it says none."""
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


def _no_status() -> Object:
    return {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
