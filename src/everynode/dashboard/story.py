"""Story of one node: its evaluation, the changes that were seen, and its events."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.dashboard.cells import label_of
from everynode.dashboard.guard import Refusal
from everynode.inspect.advice import advice
from everynode.inspect.evaluate import Evaluation
from everynode.inspect.explain import Explanation, explain_node
from everynode.inspect.pod_trouble import PodEvent

Object = dict[str, Any]
_COMMANDS: Final = ("undo", "resume", "partition")
_MAX_CHANGES: Final = 20_000  # changes of all nodes together
_MAX_EVENTS: Final = 40


class SeenChange(msgspec.Struct, frozen=True, gc=False):
    """A change of the state of one node."""

    at: float
    node: str
    state: int


class Diary:
    """The last changes of all nodes, as they were seen while a rollout was viewed."""

    def __init__(self) -> None:
        self._seen: deque[SeenChange] = deque(maxlen=_MAX_CHANGES)

    def note(self, names: Sequence[str], before: bytes, after: bytes, now: float) -> None:
        """Note which nodes changed between two states of the same nodes."""
        if before == after:
            return
        for name, old, new in zip(names, before, after, strict=True):
            if old != new:
                self._seen.append(SeenChange(now, name, new))

    def of(self, node: str) -> list[SeenChange]:
        """Return the changes of a node, oldest first."""
        return [each for each in self._seen if each.node == node]


def explain(evaluation: Evaluation, node: str, now: float) -> Explanation:
    """Return the chain of facts about a node; raises Refusal if there is no such node."""
    found = explain_node(evaluation, node, now)
    if found is None:
        raise Refusal(404, "there is no such node", "it may have left the cluster")
    return found


def node_document(
    evaluation: Evaluation,
    found: Explanation,
    *,
    seen: Iterable[SeenChange],
    errors: Sequence[str],
    events: Sequence[PodEvent],
    missing: str,
) -> Object:
    """Return what the page shows of a node."""
    row, ds = found.row, evaluation.fleet.ds
    where = "" if ds.namespace == "default" else f" -n {ds.namespace}"
    look = f"kubectl describe pod {row.pod}{where}" if row.pod else ""
    commands = [*advice(ds, row, _COMMANDS), look or f"kubectl describe node {row.node}"]
    return {
        "node": row.node,
        "reason": row.reason,
        "message": row.message,
        "facts": [{"title": fact.word, "text": fact.text} for fact in found.facts],
        "errors": list(errors),
        "commands": list(dict.fromkeys(commands)),
        "story": timeline(seen, found.pods, events),
        "missing": missing,
    }


def timeline(
    seen: Iterable[SeenChange], pods: Iterable[Pod], events: Iterable[PodEvent]
) -> list[Object]:
    """Return what happened, by time.

    Kubernetes writes whole seconds. Within one, a pod is created before anything is told of it, and
    Ready after that.
    """
    created, became, ends = [], [], []
    for pod in pods:
        name = f"pod {pod.name}"
        created.append(_line(seconds(pod.metadata.creation_timestamp), f"{name} created"))
        ready = pod.condition("Ready")
        if ready is not None:
            word = "Ready" if ready.status == "True" else "not Ready"
            became.append(_line(seconds(ready.last_transition_time), f"{name} {word}"))
        ends.append(_line(seconds(pod.metadata.deletion_timestamp), f"{name} is to be gone"))
    told = [
        _line(
            event.last,
            f"{event.reason}: {event.message}" + f" ({event.count} times)" * (event.count > 1),
            event=event.type,
        )
        for event in events
    ]
    changed = [_line(each.at, label_of(each.state), state=each.state) for each in seen]
    known = [each for each in (*created, *told, *became, *changed, *ends) if each["at"] is not None]
    return sorted(known, key=lambda each: int(each["at"]))[-_MAX_EVENTS:]


def _line(at: float | None, text: str, *, state: int | None = None, event: str = "") -> Object:
    return {"at": at, "text": text, "state": state, "event": event}
