"""Warnings of a plan: what would get in the way, and what is risky. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from everynode.api.daemonset import Flavour
from everynode.api.objects import Node
from everynode.api.times import seconds
from everynode.api.validation.lint import Severity, lint_daemonset
from everynode.cli.planning.dry_run import DryRun
from everynode.cli.terminal.text import format_count
from everynode.inspect.evaluate import Evaluation

Object = dict[str, Any]

_PARTITION: Final = "spec.updateStrategy.rollingUpdate.partition"
_MAX_NAMED: Final = 3
_NEW_NODE: Final = 7 * 86400.0  # seconds
_TOGETHER: Final = 3600.0  # nodes that joined within this time of each other came with the cluster


class Warning(msgspec.Struct, frozen=True):
    """One thing to know before the change is made."""

    about: str  # a field of the manifest, or a word: room, policy, nodes, controller
    message: str


def plan_warnings(
    new: Object,
    before: Evaluation | None,
    dry_run: DryRun,
    shortages: Mapping[str, str],
    now: float,
) -> tuple[Warning, ...]:
    """Return the warnings, the gravest first."""
    found: list[Warning] = []
    if dry_run.refusal:
        text = f"the API server refuses a pod of the new version: {dry_run.refusal}"
        found.append(Warning("policy", text))
    if shortages:
        found.append(_room(shortages))
    if before is not None:
        found += _node_warnings(before)
        found += _other_controller(before)
    nodes = list(before.nodes.values()) if before is not None else []
    found += _risks(new, nodes, now)
    return tuple(found)


def _room(shortages: Mapping[str, str]) -> Warning:
    count = format_count(len(shortages), "node")
    first = [f"{node}: {text}" for node, text in sorted(shortages.items())[:_MAX_NAMED]]
    more = f" and {len(shortages) - _MAX_NAMED:,} more" if len(shortages) > _MAX_NAMED else ""
    return Warning("room", f"the new pod does not fit on {count}: {'; '.join(first)}{more}")


def _node_warnings(before: Evaluation) -> Iterator[Warning]:
    silent = [name for name, node in sorted(before.nodes.items()) if node.ready == "Unknown"]
    sick = [name for name, node in sorted(before.nodes.items()) if node.ready == "False"]
    if silent:
        text = f"{_list_names(silent)} not reached: the kubelet is silent; updated when back"
        yield Warning("nodes", text)
    if sick:
        text = f"{_list_names(sick)} NotReady: the plan assumes that no pod becomes Ready there"
        yield Warning("nodes", text)


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more} {'is' if len(names) == 1 else 'are'}"


def _other_controller(before: Evaluation) -> Iterator[Warning]:
    """Warn if the status does not look as if Everynode wrote it."""
    ds = before.fleet.ds
    if ds.flavour is Flavour.NATIVE and ds.status.observed_generation and not ds.status.conditions:
        text = (
            "Everynode has not written the status of this native DaemonSet: another controller is "
            "at work, and the plan is what Everynode would do (everynode run --native)"
        )
        yield Warning("controller", text)


def _risks(new: Object, nodes: Sequence[Node], now: float) -> Iterator[Warning]:
    """Warn of what lint finds; a partition by number matters where nodes come and go."""
    for finding in lint_daemonset(new):
        if finding.severity is not Severity.WARNING:
            continue
        if finding.path != _PARTITION:
            yield Warning(finding.path, finding.message)
            continue
        joined = _joined_lately(nodes, now)
        if joined:
            text = f"{format_count(joined, 'node')} joined in the last 7 days: {finding.message}"
            yield Warning(finding.path, f"{text}")


def _joined_lately(nodes: Sequence[Node], now: float) -> int:
    """Return how many nodes joined within a week, other than together with the first ones."""
    created = [seconds(node.metadata.creation_timestamp) for node in nodes]
    known = [each for each in created if each is not None]
    if not known:
        return 0
    return sum(each > min(known) + _TOGETHER and each > now - _NEW_NODE for each in known)
