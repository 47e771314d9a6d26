"""Plan: what all nodes of a DaemonSet share while its spec and its revisions stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    FieldError,
    RollingUpdateType,
    UpdateStrategyType,
)
from everynode.api.keys import POD_TEMPLATE_GENERATION, REVISION_HASH
from everynode.api.objects import Node, Pod
from everynode.api.selector import LabelMatcher, SelectorError, compile_selector
from everynode.decide.inplace.update import NextStep, next_step
from everynode.decide.node.clock_skew import FutureTimes
from everynode.decide.node.eligibility import (
    host_ports_conflict,
    read_constraints,
    withdraws_toleration,
)
from everynode.decide.node.room import requests_grow, template_requests
from everynode.decide.revisions.target import (
    Revision,
    TemplateDefaults,
    is_at_revision,
    no_extra_defaults,
    revision_order,
)

_NO_NODE = LabelMatcher(())


class Plan:
    """A DaemonSet, its target and its revisions, prepared once for all nodes. Never changed.

    Two plans are equal when they lead to the same decisions. The status is not part of a plan, so
    our own status writes make no new one.
    """

    __slots__ = (
        "_matcher",
        "by_scheduler",
        "constraints",
        "ds",
        "extra_defaults",
        "fallback_hash",
        "faults",
        "first_install",
        "from_hash",
        "growing",
        "hook",
        "in_place",
        "min_ready_seconds",
        "port_conflicts",
        "revisions",
        "rolling",
        "surging",
        "target",
        "target_hash",
        "updating",
    )

    def __init__(
        self,
        ds: DaemonSet,
        target: Revision,
        revisions: Mapping[str, Revision],
        from_hash: str | None,
        *,
        by_scheduler: bool,
        extra_defaults: TemplateDefaults,
    ) -> None:
        self.ds = ds
        self.target = target
        self.revisions = revisions
        self.from_hash = from_hash
        self.by_scheduler = by_scheduler  # pinned by affinity; otherwise nodeName is set

        self.extra_defaults = extra_defaults  # set on templates before they are compared
        self.target_hash = target.hash
        self.first_install = from_hash is None  # there is no revision to hold nodes at
        # The revision of a held node whose own is unknown, such as one that joins (R3).
        self.fallback_hash = target.hash
        if from_hash is not None and from_hash in revisions and not target.completed:
            self.fallback_hash = from_hash
        self.hook = ds.pre_delete
        self.min_ready_seconds = ds.min_ready_seconds
        self._set_strategy()
        self._read_templates()

    def _set_strategy(self) -> None:
        strategy = self.ds.strategy
        self.rolling = strategy.type is UpdateStrategyType.ROLLING
        self.updating = self.rolling and not strategy.paused
        self.surging = self.rolling and strategy.max_surge.value > 0
        self.in_place = (
            self.rolling and strategy.rolling is RollingUpdateType.IN_PLACE and not self.surging
        )

    def _read_templates(self) -> None:
        self.constraints = {
            hash: read_constraints(each.template) for hash, each in self.revisions.items()
        }
        wanted = self.constraints[self.target_hash]
        self.in_place = self.in_place and not wanted.fault
        # Revisions whose pods hold a host port that a target pod needs.
        self.port_conflicts = frozenset(
            hash
            for hash, constraints in self.constraints.items()
            if host_ports_conflict(constraints, wanted)
        )
        # Revisions whose pods request less of some resource than a target pod does.
        self.growing = frozenset(
            hash
            for hash, each in self.revisions.items()
            if requests_grow(each.template, self.target.template)
        )
        self._matcher: LabelMatcher | None = None
        faults = [*self.ds.faults]
        if wanted.fault:
            faults.append(FieldError("spec.template", wanted.fault))
        affinity = "spec.template.spec.affinity.nodeAffinity.required"
        faults += [FieldError(affinity, fault) for fault in wanted.matcher.faults]
        if self.rolling and self.ds.strategy.selector is not None:
            try:
                self._matcher = compile_selector(self.ds.strategy.selector)
            except SelectorError as error:
                path = "spec.updateStrategy.rollingUpdate.selector"
                faults.append(FieldError(path, f"selects no node: {error}"))
                self._matcher = _NO_NODE
        self.faults = tuple(faults)

    @property
    def reverts(self) -> bool:
        """Whether the target was the target before, and the version after it was taken back.

        Most pods still had the target, or most had the version that came after it.
        """
        source = self.revisions.get(self.from_hash or "")
        return self.from_hash == self.target_hash or (
            source is not None and source.from_hash == self.target_hash
        )

    def is_at_target(self, pod: Pod) -> bool:
        """Whether the pod is at the target revision."""
        labels = pod.metadata.labels
        if labels.get(REVISION_HASH) == self.target_hash:
            return True
        # Only native pods carry the second label; the full comparison costs more.
        return POD_TEMPLATE_GENERATION in labels and is_at_revision(pod, self.target)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether rollingUpdate.selector matches these node labels."""
        matcher = self._matcher
        return matcher is None or (matcher is not _NO_NODE and matcher.matches(labels))

    def revision_of(self, pod: Pod) -> Revision | None:
        """Return the revision of a pod; None if it does not exist or its template is unreadable."""
        constraints = self.constraints.get(pod.hash)
        return None if constraints is None or constraints.fault else self.revisions[pod.hash]

    def withdraws_toleration(self, pod: Pod, node: Node) -> bool:
        """Whether the pod's revision tolerates a taint of the node, and the target does not."""
        old, target = self.constraints.get(pod.hash), self.constraints[self.target_hash]
        if old is None or old.fault or target.fault:
            return False
        return withdraws_toleration(old, target, node.spec.taints)

    def next_in_place_step(self, pod: Pod, *, now: float, ahead: FutureTimes) -> NextStep:
        """Return the next step of an in-place update of this pod to the target (R6)."""
        return next_step(
            pod,
            self.revision_of(pod),
            self.target,
            now=now,
            ahead=ahead,
            extra_defaults=self.extra_defaults,
        )

    def has_port_conflict(self, pod: Pod) -> bool:
        """Whether this pod holds a host port that a target pod needs.

        A pod whose revision does not exist is assumed to hold the ports of the target.
        """
        hash = pod.hash if pod.hash in self.revisions else self.target_hash
        return hash in self.port_conflicts

    def requests_grow(self, pod: Pod) -> bool:
        """Whether a target pod requests more of some resource than this pod.

        A pod whose revision does not exist, or that should be at the target by now, is assumed to
        have less than the target requests.
        """
        if pod.hash in self.revisions and pod.hash != self.target_hash:
            return pod.hash in self.growing
        return bool(template_requests(self.target.template))

    def _identity(self) -> tuple[object, ...]:
        return (
            self.ds,
            self.target,
            self.revisions,
            self.from_hash,
            self.by_scheduler,
            self.extra_defaults,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._identity() == other._identity()

    __hash__ = None  # type: ignore[assignment]


def make_plan(
    ds: DaemonSet,
    target: Revision,
    revisions: Iterable[Revision],
    from_hash: str | None,
    *,
    by_scheduler: bool = True,
    extra_defaults: TemplateDefaults = no_extra_defaults,
) -> Plan:
    """Return the plan of a DaemonSet whose target was chosen among its revisions.

    The status and the resource versions, which change with every write, are left out.
    """
    # If several revisions have the same hash, the newest is used.
    by_hash = {each.hash: _without_versions(each) for each in sorted(revisions, key=revision_order)}
    by_hash[target.hash] = _without_versions(target)
    return Plan(
        msgspec.structs.replace(
            ds,
            status=DaemonSetStatus(),
            metadata=msgspec.structs.replace(ds.metadata, resource_version=""),
        ),
        by_hash[target.hash],
        dict(sorted(by_hash.items())),
        from_hash,
        by_scheduler=by_scheduler,
        extra_defaults=extra_defaults,
    )


def _without_versions(revision: Revision) -> Revision:
    return msgspec.structs.replace(revision, resource_version="", number=0)
