"""Replay files: a plan that broke a promise, kept, told in words, and played again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from everynode.sim.actions import KINDS, NAMES
from everynode.sim.plan import Object, Plan, decode, encode
from everynode.sim.weather import OF_CALLS

KNOWN = frozenset((*NAMES, *OF_CALLS))
_USUAL = ("selector", "template", "updateStrategy")


class ReplayError(ValueError):
    """A file that is no replay file; the message says why."""


def save(plan: Plan, folder: Path) -> Path:
    """Write the plan into a file of its own, named after it."""
    name = re.sub(r"[^a-z0-9]+", "-", plan.name.lower()).strip("-") or f"seed-{plan.seed}"
    path = folder / f"replay-{name}.json"
    path.write_bytes(encode(plan))
    return path


def load(path: Path) -> Plan:
    """The plan of a replay file; raises ReplayError."""
    try:
        plan = decode(path.read_bytes())
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ReplayError(f"{path} is no replay file: {error}") from None
    wrong = next(_faults(plan), "")
    if wrong:
        raise ReplayError(f"{path} cannot be played: {wrong}")
    return plan


def _faults(plan: Plan) -> Iterator[str]:
    """What no world could be made of."""
    if plan.nodes < 1 or plan.controllers < 1:
        yield "it needs a node and a controller"
    for manifest in plan.manifests:
        if manifest.get("apiVersion") not in KINDS:
            yield f"apiVersion {manifest.get('apiVersion')!r} has no DaemonSet"
        elif not manifest.get("metadata", {}).get("name") or "template" not in manifest["spec"]:
            yield "a DaemonSet needs a name and a template"
    for happening in plan.happenings:
        if happening.what not in KNOWN:
            yield f"{happening.what!r} is nothing that can happen"


def tell(plan: Plan) -> Iterator[str]:
    """The plan in words, a line each."""
    controllers = f"{plan.controllers} controllers" if plan.controllers > 1 else "1 controller"
    nodes = f"{plan.nodes} nodes" if plan.nodes > 1 else "1 node"
    yield f"{nodes}, {controllers}, seed {plan.seed}"
    for manifest in plan.manifests:
        yield _of_manifest(manifest)
    timed = sorted(plan.happenings, key=lambda each: (each.call >= 0, each.at, each.call))
    yield from (each.describe() for each in timed)
    yield f"nothing more goes wrong from {plan.quiet_at:.1f} s on"


def _of_manifest(manifest: Object) -> str:
    spec = manifest["spec"]
    strategy = spec.get("updateStrategy") or {}
    fields: dict[str, Any] = dict(strategy.get("rollingUpdate") or {})
    others = {key: spec[key] for key in sorted(spec) if key not in _USUAL}
    said = " ".join(f"{key}={_short(value)}" for key, value in {**fields, **others}.items())
    what = f"DaemonSet {manifest['metadata']['name']} ({manifest['apiVersion']})"
    return f"{what}: {strategy.get('type', 'RollingUpdate')} {said}".rstrip()


def _short(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
