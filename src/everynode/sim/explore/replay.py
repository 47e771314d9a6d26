"""Replay files: store, load and describe a plan that broke a promise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from everynode.sim.actions.arguments import argument_error
from everynode.sim.actions.catalogue import ACTION_NAMES
from everynode.sim.actions.context import DAEMONSET_RESOURCES
from everynode.sim.faults.active import REQUEST_FAULTS
from everynode.sim.plans.plan import Object, Plan, decode, encode

KNOWN = frozenset((*ACTION_NAMES, *REQUEST_FAULTS))
_USUAL = ("selector", "template", "updateStrategy")
_MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_NODES: Final = 10_000  # the same limit as for a forecast
_MAX_CONTROLLERS: Final = 16
_MAX_SECONDS: Final = 30 * 86_400.0  # simulated seconds


class ReplayError(ValueError):
    """The file is not a replay file; the message contains the reason."""


def save(plan: Plan, folder: Path) -> Path:
    """Write the plan into a file of its own, named after it."""
    name = re.sub(r"[^a-z0-9]+", "-", plan.name.lower()).strip("-") or f"seed-{plan.seed}"
    path = folder / f"replay-{name}.json"
    path.write_bytes(encode(plan))
    return path


def load(path: Path) -> Plan:
    """The plan of a replay file; raises ReplayError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = getattr(error, "strerror", None) or error
        raise ReplayError(f"cannot read {path}: {why}") from None
    if len(content) > _MAX_BYTES:
        raise ReplayError(f"{path} is not a replay file: it is longer than {_MAX_BYTES} bytes")
    try:
        plan = decode(content)
    except (ValueError, RecursionError) as error:
        raise ReplayError(f"{path} is not a replay file: {error}") from None
    wrong = next(filter(None, _faults(plan)), "")
    if wrong:
        raise ReplayError(f"{path} cannot be played: {wrong}")
    return plan


def _faults(plan: Plan) -> Iterator[str]:
    """Yield every reason why the plan cannot be played; empty ones are none."""
    if plan.nodes < 1 or plan.controllers < 1:
        yield "it needs a node and a controller"
    if plan.nodes > _MAX_NODES or plan.controllers > _MAX_CONTROLLERS:
        yield f"it may have {_MAX_NODES} nodes and {_MAX_CONTROLLERS} controllers, and not more"
    times = [(each.at, each.seconds) for each in plan.actions]
    if (
        max(plan.quiet_at, plan.patience, *(second for pair in times for second in pair))
        > _MAX_SECONDS
    ):
        yield f"it may last {_MAX_SECONDS:.0f} seconds, and not longer"
    for manifest in plan.manifests:
        if manifest.get("apiVersion") not in DAEMONSET_RESOURCES:
            yield f"apiVersion {manifest.get('apiVersion')!r} has no DaemonSet"
        elif not _has_name(manifest.get("metadata")) or not _has_template(manifest.get("spec")):
            yield "a DaemonSet needs a name and a template"
    for action in plan.actions:
        if action.name not in KNOWN:
            yield f"{action.name!r} is not an action or a fault"
        else:
            yield argument_error(action, controllers=plan.controllers)


def _has_name(metadata: object) -> bool:
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return isinstance(name, str) and bool(name)


def _has_template(spec: object) -> bool:
    return isinstance(spec, dict) and isinstance(spec.get("template"), dict)


def describe_plan(plan: Plan) -> Iterator[str]:
    """Yield a description of the plan, line by line."""
    controllers = f"{plan.controllers} controllers" if plan.controllers > 1 else "1 controller"
    nodes = f"{plan.nodes} nodes" if plan.nodes > 1 else "1 node"
    yield f"{nodes}, {controllers}, seed {plan.seed}"
    for manifest in plan.manifests:
        yield _of_manifest(manifest)
    timed = sorted(plan.actions, key=lambda each: (each.at_request >= 0, each.at, each.at_request))
    yield from (each.describe() for each in timed)
    yield f"nothing more goes wrong from {plan.quiet_at:.1f} s on"


def _of_manifest(manifest: Object) -> str:
    spec = manifest["spec"]
    strategy = spec.get("updateStrategy") or {}
    fields: dict[str, Any] = dict(strategy.get("rollingUpdate") or {})
    others = {key: spec[key] for key in sorted(spec) if key not in _USUAL}
    shown = " ".join(f"{key}={_short(value)}" for key, value in {**fields, **others}.items())
    what = f"DaemonSet {manifest['metadata']['name']} ({manifest['apiVersion']})"
    return f"{what}: {strategy.get('type', 'RollingUpdate')} {shown}".rstrip()


def _short(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
