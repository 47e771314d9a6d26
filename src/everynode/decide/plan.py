"""What is the same for all nodes of a DaemonSet while its spec and its revisions stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Fault, RollingType, UpdateType
from everynode.api.keys import POD_TEMPLATE_GENERATION, REVISION_HASH
from everynode.api.objects import Pod
from everynode.api.selector import Matcher, SelectorError, compile_selector
from everynode.decide.actions import Notice
from everynode.decide.eligibility import ports_clash, read_facts
from everynode.decide.revisions import Revision, carries

_NO_NODE = Matcher(())


class Plan:
    """A DaemonSet, its target and its revisions, read once for all nodes. Never changed.

    Two plans are equal when they decide the same: our own status writes make no new plan.
    """

    __slots__ = (
        "_matcher",
        "by_scheduler",
        "clashing",
        "ds",
        "facts",
        "faults",
        "first",
        "from_hash",
        "hook",
        "idle",
        "in_place",
        "min_ready_seconds",
        "return_hash",
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
    ) -> None:
        self.ds = ds
        self.target = target
        self.revisions = revisions
        self.from_hash = from_hash
        self.by_scheduler = by_scheduler  # whether pods are pinned or given their nodeName

        self.target_hash = target.hash
        self.first = from_hash is None  # a first installation: nothing to hold nodes at
        known = from_hash is not None and from_hash in revisions
        # What a held node comes back as that has nothing of its own to say.
        self.return_hash: str = from_hash if known and from_hash else target.hash
        self.hook = ds.pre_delete
        self.min_ready_seconds = ds.min_ready_seconds
        self.idle = _idle(ds)  # what to say where nothing is to be done at all
        self._set_strategy()
        self._read_templates()

    def _set_strategy(self) -> None:
        strategy = self.ds.strategy
        self.rolling = strategy.type is UpdateType.ROLLING
        self.updating = self.rolling and not strategy.paused
        self.surging = self.rolling and strategy.max_surge.value > 0
        self.in_place = (
            self.rolling and strategy.rolling is RollingType.IN_PLACE and not self.surging
        )

    def _read_templates(self) -> None:
        self.facts = {hash: read_facts(each.template) for hash, each in self.revisions.items()}
        wanted = self.facts[self.target_hash]
        self.in_place = self.in_place and not wanted.fault
        # Revisions beside whose pods a target pod finds its host port taken.
        self.clashing = frozenset(
            hash for hash, facts in self.facts.items() if ports_clash(facts, wanted)
        )
        self._matcher: Matcher | None = None
        faults = [*self.ds.faults]
        if wanted.fault:
            faults.append(Fault("spec.template", wanted.fault))
        affinity = "spec.template.spec.affinity.nodeAffinity.required"
        faults += [Fault(affinity, fault) for fault in wanted.matcher.faults]
        if self.rolling and self.ds.strategy.selector is not None:
            try:
                self._matcher = compile_selector(self.ds.strategy.selector)
            except SelectorError as error:
                path = "spec.updateStrategy.rollingUpdate.selector"
                faults.append(Fault(path, f"selects no node: {error}"))
                self._matcher = _NO_NODE
        self.faults = tuple(faults)

    def carries(self, pod: Pod) -> bool:
        """Whether the pod is at the target."""
        labels = pod.metadata.labels
        if labels.get(REVISION_HASH) == self.target_hash:
            return True
        # Only native pods carry the second label; the rest of the question costs more.
        return POD_TEMPLATE_GENERATION in labels and carries(pod, self.target)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the update's node selector lets the target onto a node with these labels."""
        matcher = self._matcher
        return matcher is None or (matcher is not _NO_NODE and matcher.matches(labels))

    def revision_of(self, pod: Pod) -> Revision | None:
        """The revision a pod was made from; None if it is lost or cannot be read."""
        facts = self.facts.get(pod.hash)
        return None if facts is None or facts.fault else self.revisions[pod.hash]

    def clashes(self, pod: Pod) -> bool:
        """Whether a target pod beside this one finds its host port taken.

        Of a pod whose revision is lost it is assumed that it holds the target's own ports.
        """
        hash = pod.hash if pod.hash in self.revisions else self.target_hash
        return hash in self.clashing

    def _identity(self) -> tuple[object, ...]:
        return self.ds, self.target, self.revisions, self.from_hash, self.by_scheduler

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._identity() == other._identity()

    __hash__ = None  # type: ignore[assignment]


def _idle(ds: DaemonSet) -> tuple[Notice, ...] | None:
    """None for a DaemonSet that is worked on; one that is deleted or selects all pods is not."""
    if ds.metadata.deletion_timestamp is not None:
        return ()
    if ds.selector.match_labels or ds.selector.match_expressions:
        return None
    message = "the selector is empty and would select every pod: name the labels of your pods"
    return (Notice("Warning", "SelectingAll", message),)


def make_plan(
    ds: DaemonSet,
    target: Revision,
    revisions: Iterable[Revision],
    from_hash: str | None,
    *,
    by_scheduler: bool = True,
) -> Plan:
    """The plan for a DaemonSet whose target was chosen among its revisions.

    The status, and versions that move with every write, are left out.
    """
    by_hash = {each.hash: _settled(each) for each in revisions}
    by_hash[target.hash] = _settled(target)
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
    )


def _settled(revision: Revision) -> Revision:
    return msgspec.structs.replace(revision, resource_version="", number=0)
