"""The rules R2 to R5 counted once more from what is stored, without the controller's own code."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.affinity import NodeMatcher
from everynode.api.amount import scale
from everynode.api.daemonset import DaemonSet, Flavour, RollingType, UpdateType
from everynode.api.meaning import normalise
from everynode.api.objects import (
    Affinity,
    Container,
    Node,
    Partial,
    Pod,
    Resources,
    Toleration,
)
from everynode.api.selector import matches
from everynode.api.taints import EVICTING, untolerated, with_daemon_tolerations
from everynode.api.times import seconds
from everynode.sim.edition import grown
from everynode.sim.record import Scene
from everynode.sim.shelf import PastPods, Pods
from everynode.sim.shelf import node_of as node_of

PATIENCE: Final = 300.0
_HOOK: Final = '"preDeleteHook"'


class _Spec(Partial, frozen=True):
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False


class Wants:
    """What a template says of nodes."""

    def __init__(self, template: dict[str, Any]) -> None:
        spec = msgspec.convert(template.get("spec", {}), _Spec)
        self._matcher = NodeMatcher(spec.node_selector, spec.affinity)
        self._tolerations = with_daemon_tolerations(
            spec.tolerations, host_network=spec.host_network
        )

    def matches(self, node: Node) -> bool:
        """Whether labels and name are right."""
        return self._matcher.matches(node.name, node.metadata.labels)

    def runs(self, node: Node) -> bool:
        """Whether the node should get a pod."""
        return self.matches(node) and untolerated(node.spec.taints, self._tolerations) is None

    def stays(self, node: Node) -> bool:
        """Whether the node may keep a pod."""
        evicting = untolerated(node.spec.taints, self._tolerations, effects=EVICTING)
        return self.matches(node) and evicting is None


@lru_cache(maxsize=4096)
def meaning(template: bytes) -> bytes:
    """A template in a form that is the same for the same meaning."""
    return msgspec.json.encode(normalise(grown(template)), order="deterministic")


@lru_cache(maxsize=4096)
def wants(template: bytes) -> Wants:
    """What a template says of nodes, read once."""
    return Wants(msgspec.json.decode(template))


@lru_cache(maxsize=4096)
def template_in(data: bytes) -> bytes:
    """The template that a revision keeps."""
    template = dict(msgspec.json.decode(data)["spec"]["template"])
    template.pop("$patch", None)
    return msgspec.json.encode(template)


Asked = dict[str, tuple[str, Any]]


@lru_cache(maxsize=4096)
def asked_for(template: bytes) -> Asked:
    """The image and the resources that a template gives each container."""
    spec = msgspec.json.decode(template).get("spec") or {}
    made = msgspec.convert(spec.get("containers") or [], list[Container])
    return {each.name: (each.image, amounts(each.resources)) for each in made}


def amounts(resources: Resources) -> tuple[tuple[str, str, str], ...]:
    """Requests and limits, so that they can be compared; a missing request is its limit."""
    asked = {**resources.limits, **resources.requests}
    both = (("limits", resources.limits), ("requests", asked))
    return tuple((kind, name, str(each[name])) for kind, each in both for name in sorted(each))


def is_seen(pod: Pod) -> bool:
    """Whether the pod is watched: without its label nobody is told of it."""
    return keys.REVISION_HASH in pod.metadata.labels


def is_true(pod: Pod, kind: str) -> bool:
    """Whether a condition of the pod is True."""
    condition = pod.condition(kind)
    return condition is not None and condition.status == "True"


def is_preparing(pod: Pod) -> bool:
    """Whether the pod waits for its hook."""
    return pod.metadata.labels.get(keys.LIFECYCLE_STATE) == keys.PREPARING_DELETE


def is_blocked(pod: Pod) -> bool:
    """Whether the pod was taken out of service for its hook, before the hook's owner is told."""
    condition = pod.condition(keys.KRUISE_POD_READY)
    return condition is not None and condition.status == "False" and _HOOK in condition.message


def gate_closed(pod: Pod) -> bool:
    """Whether the pod was taken out of service for an in-place update."""
    condition = pod.condition(keys.INPLACE_UPDATE_READY)
    return condition is not None and condition.status == "False"


def state_of(pod: Pod) -> dict[str, Any]:
    """The record of an in-place update on the pod."""
    text = pod.metadata.annotations.inplace_state
    try:
        found = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def is_in_place_done(pod: Pod) -> bool:
    """Whether every container runs what the pod's spec says, after an in-place update."""
    state = state_of(pod)
    if not state or state.get("revision") != pod.hash:
        return not state
    last = state.get("lastContainerStatuses") or {}
    running = {each.name: each.image_id for each in pod.status.container_statuses}
    for name, before in last.items():
        wanted = next((c.image for c in pod.spec.containers if c.name == name), "")
        said = next((c.image for c in pod.status.container_statuses if c.name == name), "")
        if before.get("imageID") == running.get(name) and said != wanted:
            return False
    return not state.get("nextContainerResources") or _has_resources(pod)


def _has_resources(pod: Pod) -> bool:
    """Whether every container has what the pod's spec asks for."""
    given = {each.name: each.resources for each in pod.status.container_statuses}
    asked = [(each.resources, given.get(each.name)) for each in pod.spec.containers]
    return all(has is not None and amounts(has) == amounts(want) for want, has in asked)


def came_at(pod: Pod) -> float:
    """When the pod came to its revision."""
    state = state_of(pod)
    changed = state.get("updateTimestamp") if state.get("revision") == pod.hash else None
    begun = _time(changed) if isinstance(changed, str) else 0.0
    return max(seconds(pod.metadata.creation_timestamp) or 0.0, begun)


def _time(text: str) -> float:
    from everynode.api.times import TimeError, parse_time

    try:
        return parse_time(text)
    except TimeError:
        return 0.0


class Referee:
    """One DaemonSet at one moment of history."""

    def __init__(self, scene: Scene, ds: DaemonSet, now: float) -> None:
        self.scene, self.ds, self.now = scene, ds, now

    # --- The strategy: most referees are asked for little, and live for one question -----------

    @property
    def rolling(self) -> bool:
        """Whether pods are updated by us at all."""
        return self.ds.strategy.type is UpdateType.ROLLING

    @property
    def updating(self) -> bool:
        """Whether they are now."""
        return self.rolling and not self.ds.strategy.paused

    @property
    def surging(self) -> bool:
        """Whether the new pod comes before the old one goes."""
        return self.rolling and self.ds.strategy.max_surge.value > 0

    @property
    def in_place(self) -> bool:
        """Whether pods are changed where that is possible."""
        return self.rolling and self.ds.strategy.rolling is RollingType.IN_PLACE

    @cached_property
    def free(self) -> bool:
        """Whether no node is held."""
        strategy = self.ds.strategy
        held = strategy.paused or strategy.partition.value != 0 or strategy.selector is not None
        return not self.rolling or not held

    # --- Templates ---------------------------------------------------------------------------

    @cached_property
    def templates(self) -> dict[str, bytes]:
        """Stored templates by hash."""
        found = {}
        for revision in self.scene.revisions.values():
            owner = revision.metadata.controller
            hash = revision.metadata.labels.get(keys.REVISION_HASH, "")
            if owner is not None and owner.uid == self.ds.uid and hash:
                found[hash] = template_in(bytes(revision.data))
        return found

    @cached_property
    def targets(self) -> frozenset[str]:
        """Hashes whose template means the same as the DaemonSet's."""
        wanted = meaning(self.ds.template)
        return frozenset(h for h, each in self.templates.items() if meaning(each) == wanted)

    def at_target(self, pod: Pod) -> bool:
        """Whether the pod is at the target: by its hash, or as a native one by its generation."""
        if pod.hash in self.targets:
            return True
        number = self.generation
        return number != "" and pod.metadata.labels.get(keys.POD_TEMPLATE_GENERATION) == number

    @cached_property
    def generation(self) -> str:
        """The number of a native DaemonSet's template, which its pods carry."""
        native = self.ds.flavour is Flavour.NATIVE
        return self.ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, "") if native else ""

    def life(self, node: str) -> bytes:
        """The template by which the node lives (R3)."""
        if self.free or node in self.scope:
            return self.ds.template
        return self.held(node)

    def held(self, node: str) -> bytes:
        """The template by which the node lives while it is held."""
        for pod in sorted(self.pods_on(node), key=_standing):
            if pod.hash in self.templates:
                return self.templates[pod.hash]
        return self.templates.get(self.came_from, self.ds.template)

    @cached_property
    def came_from(self) -> str:
        """The hash of the stored revision that the target says it came from."""
        for revision in self.scene.revisions.values():
            hash = revision.metadata.labels.get(keys.REVISION_HASH, "")
            if hash in self.targets:
                named = revision.metadata.annotations.get(keys.FROM_REVISION, "")
                if named in self.templates:
                    return named
        return ""

    @cached_property
    def sources(self) -> frozenset[bool]:
        """Whether the stored targets say what they came from; both where they disagree."""
        return frozenset(
            bool(revision.metadata.annotations.get(keys.FROM_REVISION))
            for revision in self.scene.revisions.values()
            if revision.metadata.labels.get(keys.REVISION_HASH, "") in self.targets
        )

    # --- Nodes -------------------------------------------------------------------------------

    @cached_property
    def pods(self) -> dict[str, list[Pod]]:
        """Own pods by node."""
        found: dict[str, list[Pod]] = {}
        for pod in self.scene.pods.values():
            owner = pod.metadata.controller
            if owner is not None and owner.uid == self.ds.uid:
                found.setdefault(node_of(pod), []).append(pod)
        return found

    def pods_on(self, node: str) -> list[Pod]:
        """Own pods on a node."""
        there = self.scene.pods
        if "pods" in self.__dict__ or not isinstance(there, (Pods, PastPods)):
            return self.pods.get(node, [])
        uid = self.ds.uid
        return [pod for pod in there.on(node) if (o := pod.metadata.controller) and o.uid == uid]

    def staying(self, node: str) -> list[Pod]:
        """Own pods on a node that are not on their way out."""
        return [
            pod
            for pod in self.pods_on(node)
            if not pod.terminating and not pod.finished and not is_preparing(pod)
        ]

    @cached_property
    def wanted(self) -> frozenset[str]:
        """Nodes that the target's template wants."""
        target = wants(self.ds.template)
        return frozenset(n for n, node in self.scene.nodes.items() if target.runs(node))

    @cached_property
    def holders(self) -> frozenset[str]:
        """Nodes with a target pod."""
        return frozenset(node for node, pods in self.pods.items() if any(map(self.at_target, pods)))

    @cached_property
    def cut(self) -> int:
        """How many nodes may be at the target."""
        desired = len(self.wanted)
        return desired - scale(self.ds.strategy.partition, desired, round_up=False)

    @cached_property
    def selected(self) -> frozenset[str]:
        """Nodes that the update's selector lets the target onto."""
        selector = self.ds.strategy.selector
        if selector is None:
            return frozenset(self.scene.nodes)
        return frozenset(
            n for n, node in self.scene.nodes.items() if matches(selector, node.metadata.labels)
        )

    @cached_property
    def scope(self) -> frozenset[str]:
        """Nodes that live by the target (R2)."""
        return self.holders if self.rolling and self.ds.strategy.paused else self.released

    @cached_property
    def released(self) -> frozenset[str]:
        """The same, as if it were not paused."""
        if not self.rolling:
            return frozenset(self.scene.nodes)
        if self.ds.strategy.partition.value == 0:
            return self.holders | self.selected
        room = max(0, self.cut - len(self.holders & self.wanted))
        waiting = sorted((self.selected & self.wanted) - self.holders)
        return self.holders | frozenset(waiting[max(0, len(waiting) - room) :])

    def may_be_held(self, node: str) -> bool:
        """Whether pods that are on their way to other nodes may fill all that the partition leaves.

        What was written together arrives in any order.
        """
        if self.free or node in self.holders:
            return False
        coming = [n for n in self.wanted - self.holders if n != node and not self.staying(n)]
        return len(coming) >= self.cut - len(self.holders & self.wanted)

    def withholds(self, node: str) -> bool:
        """Whether the node gets no pod yet in a first installation step by step (R8)."""
        return self.ds.progressive and self.sources == {False} and node not in self.released

    def may_withhold(self, node: str) -> bool:
        """The same where it is not plain which of several targets was meant."""
        return self.ds.progressive and self.sources != {True} and node not in self.released

    def is_silent(self, node: str) -> bool:
        """Whether the node's kubelet is gone."""
        found = self.scene.nodes.get(node)
        return found is not None and found.ready == "Unknown"

    # --- The budget ----------------------------------------------------------------------------

    @cached_property
    def limit(self) -> int:
        """How many nodes may be down, or doubled."""
        strategy, desired = self.ds.strategy, len(self.wanted)
        surge = scale(strategy.max_surge, desired, round_up=True)
        unavailable = scale(strategy.max_unavailable, desired, round_up=True)
        if self.surging:
            return surge
        return unavailable or (0 if surge else 1)

    def is_up(self, pod: Pod, taken: Collection[str] = ()) -> bool:
        """Whether the pod is available."""
        if pod.uid in taken or pod.terminating or pod.finished or is_preparing(pod):
            return False
        since = []
        for kind in (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates)):
            condition = pod.condition(kind)
            if condition is None or condition.status != "True":
                return False
            since.append(condition.last_transition_time or pod.status.start_time)
        if not is_in_place_done(pod):
            return False
        least = self.ds.min_ready_seconds
        return least <= 0 or max(seconds(each) or 0.0 for each in since) + least <= self.now

    def is_down(self, node: str, taken: Collection[str]) -> bool:
        """Whether the node has no available pod."""
        return not any(self.is_up(pod, taken) for pod in self.pods_on(node))

    @cached_property
    def counted(self) -> frozenset[str]:
        """The nodes that count: in scope, wanted, and reachable unless there is an outage."""
        mine = self.scope & self.wanted
        silent = frozenset(node for node in mine if self.is_silent(node))
        outage = len(silent) > max(self.limit, len(self.wanted) // 10)
        return mine if outage else mine - silent

    def down(self, taken: Collection[str]) -> list[str]:
        """Counted nodes that are down once these pods are taken."""
        return sorted(node for node in self.counted if self.is_down(node, taken))

    def under_way(self, taken: Collection[str]) -> list[str]:
        """Counted nodes that are emptied for the target or not available at it yet."""
        return sorted(node for node in self.counted if self._is_under_way(node, taken))

    def _is_under_way(self, node: str, taken: Collection[str]) -> bool:
        if any(pod.uid in taken for pod in self.pods_on(node)) or not self.staying(node):
            return True
        for pod in self.staying(node):
            fresh = self.now < came_at(pod) + self.ds.min_ready_seconds + PATIENCE
            if self.at_target(pod) and fresh and not self.is_up(pod):
                return True
        return False

    def proven(self) -> int:
        """Counted nodes with an available target pod."""
        return sum(
            any(self.at_target(pod) and self.is_up(pod) for pod in self.pods_on(node))
            for node in self.counted
        )


def _standing(pod: Pod) -> tuple[bool, bool, bool, str]:
    """Those that stay first, then those that prepare, those that go, those that ended."""
    return (pod.finished, pod.terminating, is_preparing(pod), pod.uid)
