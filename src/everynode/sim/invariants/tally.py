"""Who is down now, kept up to date by every commit: a quick yes for what is plainly right.

The referee counts a whole fleet for every pod that is taken. Most takings need no referee: no node
is held, the pod is old and Ready, and with its node no more are down than may be. What is not
plainly right goes to the referee.
"""

from __future__ import annotations

from math import inf
from typing import Final

from everynode.api import keys
from everynode.api.amount import scale
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.api.times import TimeError, parse_time, seconds
from everynode.sim.clock import EPOCH
from everynode.sim.invariants.referee import Referee, is_true, node_of, state_of, wants
from everynode.sim.record import Commit, Record, Scene

MANY: Final = 50  # nodes; below that everything goes to the referee


class Tally:
    """The nodes of one DaemonSet that are not up, or will be only at some time."""

    def __init__(self, scene: Scene, ds: DaemonSet) -> None:
        referee = Referee(scene, ds, 0.0)
        self.generation = ds.metadata.generation
        self._ds = ds
        self._plain = referee.updating and referee.free and not referee.surging
        self._targets = referee.targets
        self._wanted = set(referee.wanted)
        self._up_from: dict[str, float] = {}  # of nodes that are not up for good
        for node in sorted(self._wanted):
            self.count(scene, node)

    def look(self, scene: Scene, node: str) -> None:
        """A node came, changed or went."""
        found = scene.nodes.get(node)
        if found is None or not wants(self._ds.template).runs(found):
            self._wanted.discard(node)
            self._up_from.pop(node, None)
            return
        self._wanted.add(node)
        self.count(scene, node)

    def count(self, scene: Scene, node: str) -> None:
        """The pods of a node changed."""
        if node not in self._wanted:
            return
        referee = Referee(scene, self._ds, inf)
        up = filter(referee.is_up, referee.pods_on(node))
        since = min((available_from(pod, referee.ds.min_ready_seconds) for pod in up), default=inf)
        if since == -inf:
            self._up_from.pop(node, None)
        else:
            self._up_from[node] = since

    def allows(self, scene: Scene, pod: Pod, now: float) -> bool:
        """Whether the taking of an old Ready pod is plainly right."""
        node = node_of(pod)
        if not self._plain or node not in self._wanted or pod.hash in self._targets:
            return False
        if scene.nodes[node].ready == "Unknown":
            return False
        if len(Referee(scene, self._ds, now).pods_on(node)) != 1:
            return False
        for name in [name for name, since in self._up_from.items() if since <= now]:
            del self._up_from[name]
        down = len(self._up_from) + (node not in self._up_from)
        limit = scale(self._ds.strategy.max_unavailable, len(self._wanted), round_up=True)
        return down <= max(limit, 1)


def available_from(pod: Pod, least: int) -> float:
    """From when on a pod is available that will be if it stays as it is."""
    if least <= 0:
        return -inf
    kinds = (keys.READY, *(gate.condition_type for gate in pod.spec.readiness_gates))
    found = [condition for kind in kinds if (condition := pod.condition(kind))]
    times = [each.last_transition_time or pod.status.start_time for each in found]
    return max(_resized_at(pod), *(seconds(time) or 0.0 for time in times)) + least


def _resized_at(pod: Pod) -> float:
    """When a pod was last given other resources, which may turn none of its conditions."""
    state = state_of(pod)
    if not state.get("updateResources"):
        return 0.0
    batches = state.get("containerBatchesRecord") or [{"timestamp": state.get("updateTimestamp")}]
    try:
        return parse_time(str(batches[-1].get("timestamp")))
    except TimeError:
        return 0.0


class Tallies:
    """A tally for every DaemonSet that needs one."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._found: dict[str, Tally] = {}

    def note(self, commit: Commit) -> None:
        """One more step of history."""
        if not self._found:
            return
        scene = self._record.scene
        if commit.kind == "pods":
            places = [node_of(pod) for pod in (commit.before, commit.after) if pod is not None]
            for node in dict.fromkeys(places):
                for tally in self._found.values():
                    tally.count(scene, node)
        elif commit.kind == "nodes":
            found = commit.before if commit.after is None else commit.after
            for tally in self._found.values():
                tally.look(scene, found.name)
        elif commit.kind.startswith("controllerrevisions"):
            self._found.clear()

    def allows(self, commit: Commit, pod: Pod) -> bool:
        """Whether a taking is plainly right in the state in which it was carried out."""
        assert commit.asked is not None
        now = commit.asked.now
        if abs(now - EPOCH - commit.asked.time) > 1.0 or not is_true(pod, keys.READY):
            return False  # a wrong clock, a cure
        scene = self._record.scenes[-2]
        if len(scene.nodes) < MANY:
            return False
        owner = pod.metadata.controller
        ds = scene.sets.get(owner.uid) if owner is not None else None
        if ds is None:
            return False
        tally = self._found.get(ds.uid)
        if tally is None or tally.generation != ds.metadata.generation:
            tally = self._found[ds.uid] = Tally(scene, ds)
        return tally.allows(scene, pod, now)
