"""Edits of one DaemonSet as merge patches: pure functions of the object as it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.api.keys import APPS_V1, RESTARTED_AT
from everynode.api.nulls import drop_nulls
from everynode.api.template_equality import normalise
from everynode.errors import UserError
from everynode.inspect.advice import in_namespace

Object = dict[str, Any]

ALL_CONTAINERS: Final = "*"
_GROWS: Final = (
    "this is a number of nodes: every node that joins means one more that is updated; "
    "a percentage keeps the share"
)
_PARTITION: Final = re.compile(r"(\d{1,9})(%?)", re.ASCII)


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed in a DaemonSet; an empty patch means that nothing is."""

    done: str  # for people: what the object is now
    patch: Object = {}  # a merge patch
    new_template: bool = False  # the edit leads to another revision
    cause: str | None = None  # of the change, where it is not the command that was typed
    warning: str = ""


def set_images(stored: Object, images: Mapping[str, str]) -> Edit:
    """Give containers new images, by the containers' names; `*` is all of them."""
    pod = stored["spec"]["template"]["spec"]
    lists = {key: pod[key] for key in ("initContainers", "containers") if pod.get(key)}
    names = [container["name"] for containers in lists.values() for container in containers]
    for name in images:
        if name not in names and name != ALL_CONTAINERS:
            raise UserError(f"there is no container {name}; there are: {', '.join(names)}")
    changed: Object = {}
    words = []
    for key, containers in lists.items():
        edited = []
        for container in containers:
            name, old = container["name"], container.get("image", "")
            # As with kubectl, `*` does not mean init containers.
            every = images.get(ALL_CONTAINERS, old) if key == "containers" else old
            new = images.get(name, every)
            edited.append({**container, "image": new} if new != old else container)
            words += [f"{name} {old or 'without an image'} → {new}"] if new != old else []
        if edited != containers:
            changed[key] = edited
    if not changed:
        return Edit(done="has these images already")
    patch = {"spec": {"template": {"spec": changed}}}
    return Edit(done=f"image updated: {', '.join(words)}", patch=patch, new_template=True)


def restart(stored: Object, time: str) -> Edit:
    """Restart every pod, by the annotation that `kubectl rollout restart` sets."""
    meta = {"annotations": {RESTARTED_AT: time}}
    patch = {"spec": {"template": {"metadata": meta}}}
    return Edit(done="restarted", patch=patch, new_template=True)


def set_paused(stored: Object, *, paused: bool) -> Edit:
    """Stop the update where it is, or let it go on."""
    now = bool(_rolling_update(stored, "paused").get("paused"))
    if now == paused:
        return Edit(done="is paused already" if paused else "is not paused")
    return Edit(done="paused" if paused else "resumed", patch=_rolling_patch({"paused": paused}))


def set_partition(stored: Object, partition: int | str) -> Edit:
    """Set how many nodes, or what share of them, keep the version they have."""
    before = _rolling_update(stored, "partition").get("partition", 0)
    if before == partition:
        return Edit(done=f"has partition {partition} already")
    return Edit(
        done=f"partition {before} → {partition}",
        patch=_rolling_patch({"partition": partition}),
        warning=_GROWS if isinstance(partition, int) and partition else "",
    )


def parse_partition(text: str) -> int | str:
    """Return a number of nodes, or a percentage, as a manifest has it; raises UserError."""
    found = _PARTITION.fullmatch(text)
    if found is None or (found[2] and int(found[1]) > 100):
        raise UserError(f"{text!r}: give a number of nodes, or a percentage such as 30%")
    return text if found[2] else int(text)


def go_back(stored: Object, template: bytes, *, number: int, cause: str) -> Edit:
    """Put the template of a revision into the DaemonSet again, with that revision's cause."""
    wanted = drop_nulls(msgspec.json.decode(template, type=Object))
    wanted.pop("$patch", None)  # a directive of the stored revision, not a field
    current = stored["spec"]["template"]
    if normalise(current) == normalise(wanted):
        return Edit(done=f"has the template of revision {number} already")
    return Edit(
        done=f"rolled back to revision {number}",
        patch={"spec": {"template": merge_difference(current, wanted)}},
        new_template=True,
        cause=cause,
    )


def merge_difference(before: Object, after: Object) -> Object:
    """Return the merge patch (RFC 7386) that makes `before` equal to `after`."""
    patch: Object = dict.fromkeys(key for key in before if key not in after)
    for key, new in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = merge_difference(old, new)
            if inner:
                patch[key] = inner
        elif key not in before or old != new:
            patch[key] = new
    return patch


def require_advanced(stored: Object, field: str) -> None:
    """Raise UserError for a native DaemonSet, which lacks a field of `rollingUpdate`."""
    if stored["apiVersion"] != APPS_V1:
        return
    metadata = stored["metadata"]
    name = f"ds/{metadata['name']}"
    where = in_namespace(metadata.get("namespace", "default"))
    raise UserError(
        f"{name} is a native DaemonSet, which has no `{field}`; "
        f"`everynode migrate {name}{where}` makes an Advanced one of it"
    )


def _rolling_update(stored: Object, field: str) -> Object:
    """Return `rollingUpdate` of an Advanced DaemonSet that rolls; raises UserError for others."""
    require_advanced(stored, field)
    name = stored["metadata"]["name"]
    strategy = stored["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        raise UserError(
            f"ads/{name} has the strategy OnDelete: its pods are updated when you delete them, "
            f"so that there is nothing to {'pause' if field == 'paused' else 'hold back'}"
        )
    return strategy.get("rollingUpdate") or {}


def _rolling_patch(change: Object) -> Object:
    return {"spec": {"updateStrategy": {"rollingUpdate": change}}}
