"""PodFacts: what an evaluation reads of each pod; a pod that did not change is not read again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.decide.plan import Plan
from everynode.inspect.rows import revision_of


class PodFacts(msgspec.Struct, frozen=True):
    """One pod, its node, and since when it is Ready."""

    pod: Pod
    node: str
    hash: str
    numbered: bool  # whether its revision may be told by a template generation, too
    ready_at: float | None
    alone: tuple[Pod]  # the pods of its node where there is no other

    def revision(self, plan: Plan) -> str:
        """Return the hash of the revision that the pod is at."""
        return revision_of(plan, self.pod) if self.numbered else self.hash


class PodReader:
    """Reads the pods of one DaemonSet again and again."""

    def __init__(self) -> None:
        self._known: dict[str, PodFacts] = {}

    def read(self, pods: Iterable[Pod]) -> list[PodFacts]:
        """Return the facts about pods, in their order."""
        known, self._known = self._known, {}
        facts = []
        for pod in pods:
            uid = pod.metadata.uid
            found = known.get(uid)
            if found is None or found.pod is not pod:
                found = _facts(pod)
            self._known[uid] = found
            facts.append(found)
        return facts


def _facts(pod: Pod) -> PodFacts:
    ready = pod.condition(keys.READY)
    is_ready = ready is not None and ready.status == "True"
    return PodFacts(
        pod,
        pod.node,
        pod.hash,
        keys.POD_TEMPLATE_GENERATION in pod.metadata.labels,
        seconds(ready.last_transition_time) if ready is not None and is_ready else None,
        (pod,),
    )


def by_node(pods: Iterable[PodFacts]) -> dict[str, tuple[Pod, ...]]:
    """Return the pods of each node, by uid where there are several."""
    found: dict[str, tuple[Pod, ...]] = {}
    several = set()
    for each in pods:
        here = found.get(each.node)
        if here is None:
            found[each.node] = each.alone
        else:
            found[each.node] = (*here, each.pod)
            several.add(each.node)
    for node in several:
        found[node] = tuple(sorted(found[node], key=lambda pod: pod.uid))
    return found
