"""Shrinking: reduces a plan that breaks a promise to the smallest one found that breaks it too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from everynode.components.kubelet.behaviour import overrides_by_name
from everynode.sim.differential import is_comparable
from everynode.sim.explore.campaign import play_safely
from everynode.sim.plans.plan import Action, Object, Plan, Timing

MAX_PLAYS: Final = 300
_replace: Final = msgspec.structs.replace
_REQUIRED_FIELDS: Final = ("selector", "template", "updateStrategy")


def shrink(
    plan: Plan,
    promise: str,
    *,
    most: int = MAX_PLAYS,
    on_play: Callable[[int], None] = lambda plays: None,
) -> Plan:
    """Reduce the plan while it breaks the same promise; `on_play` gets the number of plays."""
    search = _Search(plan, promise, most, on_play)
    while search.plays < most and any(step(search) for step in _STEPS):
        pass
    return search.plan


class _Search:
    """The state of a search: the smallest plan so far and the number of plays."""

    def __init__(self, plan: Plan, promise: str, most: int, on_play: Callable[[int], None]) -> None:
        self.plan = plan
        self.plays = 0
        self._promise = promise
        self._most = most
        self._on_play = on_play
        self._seen: set[bytes] = set()

    def attempt(self, candidate: Plan) -> bool:
        """Play the candidate; keep it and return True if it breaks the promise too."""
        key = msgspec.json.encode(candidate)
        if candidate == self.plan or key in self._seen or self.plays >= self._most:
            return False
        self._seen.add(key)
        if not can_converge(candidate):
            return False
        self.plays += 1
        self._on_play(self.plays)
        if all(
            violation.promise != self._promise for violation in play_safely(candidate).violations
        ):
            return False
        self.plan = candidate
        return True


# --- Reductions ----------------------------------------------------------------------------------


def _fewer_actions(search: _Search) -> bool:
    """Remove half of the actions, then quarters, and finally single ones."""
    smaller = False
    size = len(search.plan.actions)
    while size:
        start = 0
        while start < len(search.plan.actions):
            all_of_them = search.plan.actions
            left = all_of_them[:start] + all_of_them[start + size :]
            if search.attempt(_replace(search.plan, actions=left)):
                smaller = True
            else:
                start += size
        size //= 2
    return smaller


def _smaller_world(search: _Search) -> bool:
    plan = search.plan
    found = [search.attempt(_replace(plan, long_idle=False))]
    found.append(search.attempt(_replace(search.plan, manifests=plan.manifests[:1])))
    found.append(search.attempt(_replace(search.plan, controllers=1)))
    for nodes in range(1, plan.nodes):
        if search.attempt(_replace(search.plan, nodes=nodes)):
            return True
    return any(found)


def _plainer_manifests(search: _Search) -> bool:
    found = False
    for index in range(len(search.plan.manifests)):
        while any(
            search.attempt(_with_manifest(search.plan, index, plainer))
            for plainer in _plainer(search.plan.manifests[index])
        ):
            found = True
    return found


def _plainer(manifest: Object) -> Iterator[Object]:
    """Yield the manifest with one field removed, for each field."""
    spec = manifest["spec"]
    for name in sorted(spec.keys() - set(_REQUIRED_FIELDS)):
        yield {**manifest, "spec": _less(spec, name)}
    rolling = spec.get("updateStrategy", {}).get("rollingUpdate") or {}
    for name in sorted(rolling):
        strategy = {**spec["updateStrategy"], "rollingUpdate": _less(rolling, name)}
        yield {**manifest, "spec": {**spec, "updateStrategy": strategy}}
    metadata = spec["template"].get("metadata", {})
    if "annotations" in metadata:
        template = {**spec["template"], "metadata": _less(metadata, "annotations")}
        yield {**manifest, "spec": {**spec, "template": template}}


def _less(fields: Object, name: str) -> Object:
    return {key: value for key, value in fields.items() if key != name}


def _with_manifest(plan: Plan, index: int, manifest: Object) -> Plan:
    made = (*plan.manifests[:index], manifest, *plan.manifests[index + 1 :])
    return _replace(plan, manifests=made)


def _shorter_times(search: _Search) -> bool:
    found = search.attempt(_replace(search.plan, timing=Timing()))
    for index in range(len(search.plan.actions)):
        for calmer in _calmer(search.plan.actions[index]):
            found = search.attempt(_with_action(search.plan, index, calmer)) or found
    last = max((each.at for each in search.plan.actions), default=0.0)
    return search.attempt(_replace(search.plan, quiet_at=float(round(last) + 1))) or found


def _calmer(action: Action) -> Iterator[Action]:
    """Yield the action at a rounder time, and with a shorter duration."""
    if action.seconds:
        yield _replace(action, seconds=0.0)
        yield _replace(action, seconds=float(round(action.seconds / 2)))
        yield _replace(action, seconds=float(round(action.seconds)))
    if action.at >= 0:
        yield _replace(action, at=float(round(action.at / 2)))
        yield _replace(action, at=float(round(action.at)))


def _with_action(plan: Plan, index: int, action: Action) -> Plan:
    made = (*plan.actions[:index], action, *plan.actions[index + 1 :])
    return _replace(plan, actions=made)


_STEPS: Final = (_fewer_actions, _smaller_world, _plainer_manifests, _shorter_times)


# --- Valid candidates ----------------------------------------------------------------------------


def can_converge(plan: Plan) -> bool:
    """Whether the plan can settle: a version that cannot work is followed by one that can."""
    if plan.compare_without_faults and not is_comparable(plan):
        return False
    updates = [each for each in plan.actions if each.name == "set-image"]
    bad = [each.at for each in updates if _is_bad(each)]
    if not bad:
        return True
    fixed = max(updates, key=lambda each: each.at).at > max(bad)
    return fixed and (not _is_holding(plan) or _releases(plan, max(bad)))


def _is_bad(update: Action) -> bool:
    return overrides_by_name(str(update.args.get("image", ""))).fail != ""


def _is_holding(plan: Plan) -> bool:
    """Whether a partition, pause or selector can hold nodes at a version that cannot work."""
    strategies = [_rolling(each) for each in plan.manifests]
    strategies += [_rolling({"spec": each.args["spec"]}) for each in plan.actions if _applies(each)]
    return any(
        fields.get(name) for fields in strategies for name in ("partition", "paused", "selector")
    )


def _releases(plan: Plan, after: float) -> bool:
    """Whether the last spec change comes after the bad version and releases all nodes."""
    last = [_rolling({"spec": h.args["spec"]}) for h in plan.actions if _applies(h)][-1:]
    late = any(_applies(each) and each.at >= after for each in plan.actions)
    return late and all(not any(fields.values()) and "partition" in fields for fields in last)


def _applies(action: Action) -> bool:
    return action.name == "apply"


def _rolling(manifest: Object) -> dict[str, Any]:
    strategy = manifest["spec"].get("updateStrategy") or {}
    return strategy.get("rollingUpdate") or {}
