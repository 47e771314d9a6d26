"""What changed between two models of the page: a batch that makes the older one the newer."""

from __future__ import annotations

from typing import Any

from everynode.dashboard.model import Object, PageModel

_MISSING: Any = object()


def diff(before: PageModel, after: PageModel) -> Object | None:
    """Return the batch from one model to the next; None if that needs a new snapshot."""
    if before.names != after.names or before.labels != after.labels:
        return None
    at: list[int] = []
    if before.states != after.states:
        pairs = enumerate(zip(before.states, after.states, strict=True))
        at = [index for index, (old, new) in pairs if old != new]
    changed = {
        key: value for key, value in after.set.items() if before.set.get(key, _MISSING) != value
    }
    if set(changed) == {"now"} and not at:
        changed = {}  # a later time alone is no change
    return {"set": changed, "at": at, "states": [after.states[index] for index in at]}


def is_empty(batch: Object) -> bool:
    """Whether a batch changes nothing."""
    return not batch["set"] and not batch["at"]


def apply(model: PageModel, batch: Object) -> PageModel:
    """Return the model after a batch, as the page computes it."""
    states = bytearray(model.states)
    for index, state in zip(batch["at"], batch["states"], strict=True):
        states[index] = state
    return PageModel(
        set={**model.set, **batch["set"]},
        names=model.names,
        labels=model.labels,
        states=bytes(states),
    )
