"""The answer of a plan: everything that is printed, in text or for programs. Values only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.cli.planning.change import ChangedField
from everynode.cli.planning.dry_run import DryRun
from everynode.cli.planning.question import Question
from everynode.cli.planning.warnings import Warning
from everynode.forecast.durations import Durations
from everynode.forecast.node_plans import NodePlan
from everynode.forecast.planned_rollout import RolloutPlan

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A plan; without the right to list nodes there is no forecast."""

    question: Question
    ds: DaemonSet  # as it would be
    changes: list[ChangedField]
    durations: Durations
    hook: float
    plan: RolloutPlan | None
    dry_run: DryRun
    warnings: tuple[Warning, ...]

    @property
    def in_order(self) -> list[NodePlan]:
        """The nodes on which something happens, the first one first."""
        nodes = self.plan.nodes if self.plan is not None else ()
        return sorted((each for each in nodes if each.order), key=lambda each: each.order or 0)

    @property
    def groups(self) -> list[tuple[str, str, int]]:
        """Action, reason and number of nodes, the most frequent first."""
        nodes = self.plan.nodes if self.plan is not None else ()
        counts = Counter((each.action.value, each.reason) for each in nodes)
        ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [(action, reason, count) for (action, reason), count in ordered]


def plan_document(answer: Answer) -> Object:
    """Return the plan for programs; the fields are listed in docs/plan.md."""
    question, plan = answer.question, answer.plan
    durations = {
        name: {"seconds": round(each.seconds, 1), "source": each.source}
        for name, each in (
            ("pull", answer.durations.pull),
            ("start", answer.durations.start),
            ("stop", answer.durations.stop),
        )
    }
    actions = Counter(each.action.value for each in plan.nodes) if plan is not None else {}
    return {
        "apiVersion": question.new["apiVersion"],
        "kind": "DaemonSet",
        "namespace": question.namespace,
        "name": question.new["metadata"]["name"],
        "exists": question.live is not None,
        "changes": [each._asdict() for each in answer.changes],
        "durations": {**durations, "hook": {"seconds": answer.hook, "source": "given with --hook"}},
        "forecast": None if plan is None else msgspec.to_builtins(plan.forecast),
        "actions": dict(sorted(actions.items())),
        "order": [each.node for each in answer.in_order],
        "dryRun": {
            "node": answer.dry_run.node,
            "refusal": answer.dry_run.refusal,
            "unknown": answer.dry_run.unknown,
        },
        "warnings": [msgspec.to_builtins(each) for each in answer.warnings],
        "missingPermissions": list(question.objects.missing),
        "items": [] if plan is None else [msgspec.to_builtins(each) for each in plan.nodes],
    }
