"""The planned change: a DaemonSet as it would be stored afterwards. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from everynode.api.template_equality import normalise
from everynode.apiserver.patches.json_patch import apply_merge_patch
from everynode.change.edits import require_advanced, set_images
from everynode.errors import UsageError, UserError

Object = dict[str, Any]

_AMOUNT: Final = re.compile(r"\d+|\d+%")
_MAX_CHARACTERS: Final = 60


class Flags(NamedTuple):
    """What options change in a DaemonSet."""

    images: Mapping[str, str]  # by container
    limits: Mapping[str, str]  # rollingUpdate's fields: maxUnavailable, maxSurge, partition


class ChangedField(NamedTuple):
    """A field of the spec that the change changes; empty texts where it was or becomes absent."""

    path: str
    before: str
    after: str


def parse_images(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `--set-image CONTAINER=IMAGE`, given several times; raises UsageError."""
    found = {}
    for pair in pairs:
        container, _, image = pair.partition("=")
        if not container or image.split() != [image]:
            raise UsageError(f"--set-image {pair}: write CONTAINER=IMAGE, such as agent=agent:1.1")
        found[container] = image
    return found


def parse_limit(option: str, text: str) -> int | str:
    """Parse a number of nodes or a percentage; raises UsageError."""
    if not _AMOUNT.fullmatch(text):
        raise UsageError(f"{option} {text}: give a number of nodes or a percentage such as 10%")
    return text if text.endswith("%") else int(text)


def apply_flags(ds: Object, flags: Flags) -> Object:
    """Return the DaemonSet with the changes that options ask for; raises UserError."""
    if flags.images:
        ds = apply_merge_patch(ds, set_images(ds, flags.images).patch)
    if not flags.limits:
        return ds
    rolling = {
        name: parse_limit(_option(name), text) for name, text in flags.limits.items() if text
    }
    name = ds["metadata"]["name"]
    if "partition" in rolling:
        require_advanced(ds, "partition")
    strategy = ds["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete" and rolling:
        raise UserError(f"{name} has the strategy OnDelete, which knows no {sorted(rolling)[0]}")
    if rolling.get("maxSurge") and "maxUnavailable" not in rolling:
        rolling["maxUnavailable"] = 0
    patch = {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}
    changed: Object = apply_merge_patch(ds, patch)
    return changed


def changed_fields(before: Object, after: Object) -> list[ChangedField]:
    """Return the fields of the spec that differ in meaning, by path."""
    return sorted(_differences(_comparable(before), _comparable(after), ""))


def _option(field: str) -> str:
    return "--" + re.sub("([A-Z])", r"-\1", field).lower()


def _comparable(ds: Object) -> Object:
    spec = dict(ds.get("spec") or {})
    return {**spec, "template": normalise(spec.get("template") or {})}


def _differences(before: Any, after: Any, path: str) -> Iterator[ChangedField]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            where = f"{path}.{key}" if path else str(key)
            yield from _differences(before.get(key), after.get(key), where)
    elif _are_named(before) and _are_named(after):
        old, new = ({each["name"]: each for each in one} for one in (before, after))
        for name in {**old, **new}:
            yield from _differences(old.get(name), new.get(name), f"{path}[{name}]")
    else:
        yield ChangedField(path, _text(before), _text(after))


def _are_named(value: object) -> bool:
    """Whether a value is a list of objects with distinct names, such as containers."""
    if not isinstance(value, list) or not value:
        return False
    names = [each.get("name") for each in value if isinstance(each, dict)]
    return len(names) == len(value) == len({*map(str, names)}) and None not in names


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
