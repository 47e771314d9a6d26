"""Oracle: rules R2 to R5 (docs/rules.md) computed from the stored objects, without `decide`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.affinity import NodeMatcher
from everynode.api.daemonset import DaemonSet, Flavour, RollingUpdateType, UpdateStrategyType
from everynode.api.int_or_percent import scaled_value
from everynode.api.objects import (
    Affinity,
    Container,
    Node,
    Partial,
    Pod,
    Taint,
    Toleration,
)
from everynode.api.selector import matches
from everynode.api.taints import EVICTING_EFFECTS, find_untolerated_taint, with_daemon_tolerations
from everynode.api.template_equality import normalise
from everynode.api.times import seconds
from everynode.sim.checks.inplace_progress import (
    amounts,
    is_in_place_done,
    revision_since,
)
from everynode.sim.checks.pod_health import clock_lag, proves_from, sick_from, trusted_from
from everynode.sim.faults.next_release import with_next_default
from everynode.sim.history.cluster_state import ClusterState
from everynode.sim.history.snapshots import PastPodIndex, PodIndex

PROGRESS_SECONDS: Final = 300.0
TRIAL_SECONDS: Final = 2
_LEFT_ALONE: Final = frozenset(
    ("GracefulNodeShutdownInProgress", "MaintenanceInProgress", "DrainInProgress", "Drained")
)
_HOOK: Final = '"preDeleteHook"'


class _PodSpec(Partial, frozen=True):
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False


class NodeFit:
    """Which nodes a template fits: selector, affinity and tolerations."""

    def __init__(self, template: dict[str, Any]) -> None:
        spec = msgspec.convert(template.get("spec", {}), _PodSpec)
        self._matcher = NodeMatcher(spec.node_selector, spec.affinity)
        self._tolerations = with_daemon_tolerations(
            spec.tolerations, host_network=spec.host_network
        )

    def matches(self, node: Node) -> bool:
        """Whether the node's labels and name match the selector and the affinity."""
        return self._matcher.matches(node.name, node.metadata.labels)

    def should_run(self, node: Node) -> bool:
        """Whether the node should get a pod."""
        return (
            self.matches(node)
            and find_untolerated_taint(node.spec.taints, self._tolerations) is None
        )

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod may be scheduled in spite of this taint."""
        return find_untolerated_taint((taint,), self._tolerations) is None

    def may_stay(self, node: Node) -> bool:
        """Whether the node may keep a pod."""
        evicting = find_untolerated_taint(
            node.spec.taints, self._tolerations, effects=EVICTING_EFFECTS
        )
        return self.matches(node) and evicting is None


@lru_cache(maxsize=4096)
def canonical_template(template: bytes) -> bytes:
    """A template in canonical form: equal for templates that mean the same."""
    return msgspec.json.encode(normalise(with_next_default(template)), order="deterministic")


@lru_cache(maxsize=4096)
def node_fit(template: bytes) -> NodeFit:
    """The NodeFit of a template; cached."""
    return NodeFit(msgspec.json.decode(template))


@lru_cache(maxsize=4096)
def revision_template(data: bytes) -> bytes:
    """The template stored in a ControllerRevision."""
    template = dict(msgspec.json.decode(data)["spec"]["template"])
    template.pop("$patch", None)
    return msgspec.json.encode(template)


ContainerSettings = dict[str, tuple[str, Any]]


@lru_cache(maxsize=4096)
def template_containers(template: bytes) -> ContainerSettings:
    """The image and the resources that a template gives each container."""
    spec = msgspec.json.decode(template).get("spec") or {}
    containers = msgspec.convert(spec.get("containers") or [], list[Container])
    return {each.name: (each.image, amounts(each.resources)) for each in containers}


def is_watched(pod: Pod) -> bool:
    """Whether the controller watches the pod: it selects pods by this label."""
    return keys.REVISION_HASH in pod.metadata.labels


def is_true(pod: Pod, kind: str) -> bool:
    """Whether a condition of the pod is True."""
    condition = pod.condition(kind)
    return condition is not None and condition.status == "True"


def is_preparing(pod: Pod) -> bool:
    """Whether the pod waits for its preDelete hook."""
    return pod.metadata.labels.get(keys.LIFECYCLE_STATE) == keys.PREPARING_DELETE


def is_marked_not_ready(pod: Pod) -> bool:
    """Whether the pod was marked NotReady for its preDelete hook (markPodNotReady)."""
    condition = pod.condition(keys.KRUISE_POD_READY)
    return condition is not None and condition.status == "False" and _HOOK in condition.message


def is_left_alone(node: Node) -> bool:
    """Whether pods of the node are not taken (R4), by its conditions."""
    true_conditions = {each.type for each in node.status.conditions if each.status == "True"}
    return node.ready == "Unknown" or not true_conditions.isdisjoint(_LEFT_ALONE)


class Oracle:
    """The rules applied to one DaemonSet in one cluster state, at one wall-clock time.

    `remembered` are empty nodes of which the controller knows that their last pod was at the
    target.
    """

    def __init__(
        self,
        cluster: ClusterState,
        ds: DaemonSet,
        now: float,
        remembered: frozenset[str] = frozenset(),
    ) -> None:
        self.cluster, self.ds, self.now = cluster, ds, now
        self.remembered = remembered

    # --- The strategy. Computed lazily: most oracles answer only one question ---

    @property
    def rolling(self) -> bool:
        """Whether the update strategy is RollingUpdate."""
        return self.ds.strategy.type is UpdateStrategyType.ROLLING

    @property
    def updating(self) -> bool:
        """Whether the strategy is RollingUpdate and not paused."""
        return self.rolling and not self.ds.strategy.paused

    @property
    def surging(self) -> bool:
        """Whether a new pod is created before the old one is deleted (maxSurge)."""
        return self.rolling and self.ds.strategy.max_surge.value > 0

    @property
    def in_place(self) -> bool:
        """Whether pods are updated in place where possible."""
        return self.rolling and self.ds.strategy.rolling is RollingUpdateType.IN_PLACE

    @cached_property
    def unrestricted(self) -> bool:
        """Whether no partition, selector or pause holds any node."""
        strategy = self.ds.strategy
        held = strategy.paused or strategy.partition.value != 0 or strategy.selector is not None
        return not self.rolling or not held

    # --- Templates ---------------------------------------------------------------------------

    @cached_property
    def templates(self) -> dict[str, bytes]:
        """Stored templates by hash."""
        found = {}
        for revision in self.cluster.revisions.values():
            owner = revision.metadata.controller
            hash = revision.metadata.labels.get(keys.REVISION_HASH, "")
            if owner is not None and owner.uid == self.ds.uid and hash:
                found[hash] = revision_template(bytes(revision.data))
        return found

    @cached_property
    def targets(self) -> frozenset[str]:
        """Hashes of revisions whose template is equivalent to the DaemonSet's."""
        target = canonical_template(self.ds.template)
        return frozenset(
            h for h, each in self.templates.items() if canonical_template(each) == target
        )

    def at_target(self, pod: Pod) -> bool:
        """Whether the pod is at the target, by its hash or, if native, its generation label."""
        if pod.hash in self.targets:
            return True
        number = self.generation
        return number != "" and pod.metadata.labels.get(keys.POD_TEMPLATE_GENERATION) == number

    @cached_property
    def generation(self) -> str:
        """The template generation of a native DaemonSet, which its pods carry as a label."""
        native = self.ds.flavour is Flavour.NATIVE
        return self.ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, "") if native else ""

    def template_of(self, pod: Pod) -> bytes | None:
        """The template of a pod's revision; None if it is not stored."""
        return self.ds.template if self.at_target(pod) else self.templates.get(pod.hash)

    def node_template(self, node: str) -> bytes:
        """The template of the revision that the node should have (R3)."""
        if self.unrestricted or node in self.scope:
            return self.ds.template
        return self.held_template(node)

    def held_template(self, node: str) -> bytes:
        """The template that a held node keeps."""
        for pod in sorted(self.pods_on(node), key=_keep_order):
            if pod.hash in self.templates:
                return self.templates[pod.hash]
        return self.fallback_template

    @property
    def fallback_template(self) -> bytes:
        """The template of a held node of which nothing is known."""
        return self.templates.get(self.needed_source, self.ds.template)

    @property
    def needed_source(self) -> str:
        """The source revision, until the target was once complete."""
        return "" if self.completed else self.source_revision

    @cached_property
    def completed(self) -> bool:
        """Whether it is noted on a target that it was once complete."""
        return any(
            revision.metadata.labels.get(keys.REVISION_HASH, "") in self.targets
            and revision.metadata.annotations.get(keys.COMPLETED, "").endswith(f"/{self.ds.uid}")
            for revision in self.cluster.revisions.values()
        )

    @cached_property
    def source_revision(self) -> str:
        """The hash of the stored revision that the target names as its source."""
        for revision in self.cluster.revisions.values():
            hash = revision.metadata.labels.get(keys.REVISION_HASH, "")
            if hash in self.targets:
                named = revision.metadata.annotations.get(keys.FROM_REVISION, "")
                if named in self.templates:
                    return named
        return ""

    @cached_property
    def sources(self) -> frozenset[bool]:
        """Whether the stored targets name a source revision; both values where they disagree."""
        return frozenset(
            bool(revision.metadata.annotations.get(keys.FROM_REVISION))
            for revision in self.cluster.revisions.values()
            if revision.metadata.labels.get(keys.REVISION_HASH, "") in self.targets
        )

    # --- Nodes -------------------------------------------------------------------------------

    @cached_property
    def pods(self) -> dict[str, list[Pod]]:
        """Own pods by node."""
        found: dict[str, list[Pod]] = {}
        for pod in self.cluster.pods.values():
            owner = pod.metadata.controller
            if owner is not None and owner.uid == self.ds.uid:
                found.setdefault(pod.node, []).append(pod)
        return found

    def pods_on(self, node: str) -> list[Pod]:
        """Own pods on a node."""
        there = self.cluster.pods
        if "pods" in self.__dict__ or not isinstance(there, (PodIndex, PastPodIndex)):
            return self.pods.get(node, [])
        uid = self.ds.uid
        return [pod for pod in there.on(node) if (o := pod.metadata.controller) and o.uid == uid]

    def staying(self, node: str) -> list[Pod]:
        """Own pods on a node that are neither finished, terminating nor preparing for deletion."""
        return [
            pod
            for pod in self.pods_on(node)
            if not pod.terminating and not pod.finished and not is_preparing(pod)
        ]

    @cached_property
    def desired_nodes(self) -> frozenset[str]:
        """Nodes that should run a pod by the target's template."""
        target = node_fit(self.ds.template)
        return frozenset(n for n, node in self.cluster.nodes.items() if target.should_run(node))

    @cached_property
    def updated_nodes(self) -> frozenset[str]:
        """Nodes with a target pod, and empty ones that had it last."""
        there = (node for node, pods in self.pods.items() if any(map(self.at_target, pods)))
        return self.remembered.union(there)

    @cached_property
    def max_updated(self) -> int:
        """How many nodes the partition lets update to the target."""
        desired = len(self.desired_nodes)
        return desired - scaled_value(self.ds.strategy.partition, desired, round_up=False)

    @cached_property
    def selected(self) -> frozenset[str]:
        """Nodes that match the rolling update's selector."""
        selector = self.ds.strategy.selector
        if selector is None:
            return frozenset(self.cluster.nodes)
        return frozenset(
            n for n, node in self.cluster.nodes.items() if matches(selector, node.metadata.labels)
        )

    @cached_property
    def scope(self) -> frozenset[str]:
        """Nodes in the scope of the update (R2)."""
        return self.updated_nodes if self.rolling and self.ds.strategy.paused else self.released

    @cached_property
    def released(self) -> frozenset[str]:
        """The scope as if the update were not paused."""
        if not self.rolling:
            return frozenset(self.cluster.nodes)
        counted = self.desired_nodes.union(self.pods).intersection(self.cluster.nodes)
        if not scaled_value(self.ds.strategy.partition, len(counted), round_up=False):
            return self.updated_nodes | self.selected
        room = max(0, self.max_updated - len(self.updated_nodes & self.desired_nodes))
        waiting = sorted((self.selected & self.desired_nodes) - self.updated_nodes)
        return self.updated_nodes | frozenset(waiting[max(0, len(waiting) - room) :])

    def may_be_held(self, node: str) -> bool:
        """Whether pods that other nodes still lack may use up what the partition allows.

        Creates that were sent together reach the server in any order.
        """
        if self.unrestricted or node in self.updated_nodes:
            return False
        coming = [
            n for n in self.desired_nodes - self.updated_nodes if n != node and not self.staying(n)
        ]
        return len(coming) >= self.max_updated - len(self.updated_nodes & self.desired_nodes)

    def holds_back(self, node: str) -> bool:
        """Whether a progressive first installation withholds the node's pod for now (R8)."""
        return self.ds.progressive and self.sources == {False} and node not in self.released

    def may_hold_back(self, node: str) -> bool:
        """Like `holds_back`, but also true if only one of several stored targets implies it."""
        return self.ds.progressive and self.sources != {True} and node not in self.released

    def is_silent(self, node: str) -> bool:
        """Whether the node is left alone: its kubelet is silent, or it is in maintenance."""
        found = self.cluster.nodes.get(node)
        return found is not None and is_left_alone(found)

    # --- The budget ----------------------------------------------------------------------------

    @cached_property
    def limit(self) -> int:
        """maxUnavailable as a number of nodes; with surge, maxSurge."""
        strategy, desired = self.ds.strategy, len(self.desired_nodes)
        surge = scaled_value(strategy.max_surge, desired, round_up=True)
        unavailable = scaled_value(strategy.max_unavailable, desired, round_up=True)
        if self.surging:
            return surge
        return unavailable or (0 if surge else 1)

    def is_available(self, pod: Pod, disrupted: Collection[str] = ()) -> bool:
        """Whether the pod is available and not one of the disrupted ones."""
        if pod.uid in disrupted or pod.terminating or pod.finished or is_preparing(pod):
            return False
        since = []
        for kind in (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates)):
            condition = pod.condition(kind)
            if condition is None or condition.status != "True":
                return False
            moment = seconds(condition.last_transition_time or pod.status.start_time) or 0.0
            since.append(moment + clock_lag(pod) if kind == keys.READY else moment)
        if not is_in_place_done(pod):
            return False
        least = self.ds.min_ready_seconds
        return least <= 0 or max(since) + least <= self.now

    def is_unavailable(self, node: str, disrupted: Collection[str]) -> bool:
        """Whether the node has no available pod."""
        return not any(self.is_available(pod, disrupted) for pod in self.pods_on(node))

    def is_up(self, pod: Pod, disrupted: Collection[str] = ()) -> bool:
        """Whether the pod counts as up in the budget: not a target pod that restarted lately."""
        if not self.is_available(pod, disrupted):
            return False
        return trusted_from(pod) <= self.now or not self.at_target(pod)

    def _is_down(self, node: str, disrupted: Collection[str], *, proven: bool) -> bool:
        """Whether the node is down for the budget, once these pods are disrupted.

        Until the target is proven on some node, pods that do not prove it keep no node up.
        """
        up = [pod for pod in self.pods_on(node) if self.is_up(pod, disrupted)]
        return not up or (not proven and all(map(self._proves_nothing, up)))

    def _proves_nothing(self, pod: Pod) -> bool:
        return self.at_target(pod) and not self.proves(pod)

    def proves(self, pod: Pod) -> bool:
        """Whether this target pod, if it is up, shows that the target works."""
        return self.ds.min_ready_seconds >= TRIAL_SECONDS or proves_from(pod) <= self.now

    def is_proven(self, disrupted: Collection[str] = ()) -> bool:
        """Whether a target pod on a node in scope shows that the target works."""
        return any(
            self.at_target(pod) and self.is_up(pod, disrupted) and self.proves(pod)
            for node in sorted(self.scope)
            if not self.is_silent(node)
            for pod in self.pods_on(node)
        )

    def is_sick(self, pod: Pod) -> bool:
        """Whether the pod is sick: not Ready, and not only for a moment."""
        return not is_true(pod, keys.READY) and sick_from(pod) <= self.now

    @cached_property
    def counted_nodes(self) -> frozenset[str]:
        """Nodes in the budget: in scope and desired; silent and given-up ones only in an outage."""
        mine = self.scope & self.desired_nodes
        lost = frozenset(node for node in mine if self.is_silent(node) or self.is_given_up(node))
        outage = len(lost) > max(self.limit, len(self.desired_nodes) // 10)
        return mine if outage else mine - lost

    def is_given_up(self, node: str) -> bool:
        """Whether a NotReady node was sick before its target pod, which has had its time."""
        found = self.cluster.nodes.get(node)
        if found is None or found.ready != "False":
            return False
        patience = self.ds.min_ready_seconds + PROGRESS_SECONDS
        pods = [pod for pod in self.pods_on(node) if not pod.terminating and self.at_target(pod)]
        noted = [pod for pod in pods if pod.metadata.annotations.replaced_sick in self.targets]
        return bool(noted) and all(self.now >= revision_since(pod) + patience for pod in noted)

    def unavailable(self, disrupted: Collection[str]) -> list[str]:
        """Counted nodes that are down once these pods are disrupted."""
        proven = self.is_proven(disrupted)
        nodes = self.counted_nodes
        return sorted(node for node in nodes if self._is_down(node, disrupted, proven=proven))

    def in_progress(self, disrupted: Collection[str]) -> list[str]:
        """Counted nodes without a staying pod, or whose recent target pod is not available yet."""
        return sorted(node for node in self.counted_nodes if self._is_in_progress(node, disrupted))

    def _is_in_progress(self, node: str, disrupted: Collection[str]) -> bool:
        pods = self.pods_on(node)
        if any(pod.uid in disrupted for pod in pods):
            return True
        # A failed target pod that waits for its replacement counts like one that is not available.
        failed = [pod for pod in pods if pod.finished and not pod.terminating]
        decisive = self.staying(node) or [pod for pod in failed if self.at_target(pod)]
        if not decisive:
            return True
        for pod in decisive:
            fresh = self.now < revision_since(pod) + self.ds.min_ready_seconds + PROGRESS_SECONDS
            if self.at_target(pod) and fresh and not self.is_up(pod):
                return True
        return False

    def proven_count(self) -> int:
        """Nodes with an available target pod, counted or reachable and only keeping their pod."""
        kept = {node for node in self.scope - self.desired_nodes if not self.is_silent(node)}
        return sum(
            any(self.at_target(pod) and self.is_up(pod) for pod in self.pods_on(node))
            for node in self.counted_nodes | (kept & self.cluster.nodes.keys())
        )


def _keep_order(pod: Pod) -> tuple[bool, bool, bool, str]:
    """Sort key: running pods first, then preparing, terminating and finished ones."""
    return (pod.finished, pod.terminating, is_preparing(pod), pod.uid)
