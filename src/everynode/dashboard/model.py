"""The page's model of one rollout: plain values, made from an evaluation. Pure functions."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.times import seconds
from everynode.dashboard.cells import MAX_REASONS, PLAIN, cell_state, legend, with_reason
from everynode.dashboard.summary import as_sentence, sentence
from everynode.decide.fleet.conditions import COMPLETE
from everynode.inspect.evaluate import Evaluation, is_complete, summarise
from everynode.inspect.fleet import FleetView, NodeRow, NodeStanding, RolloutState

Object = dict[str, Any]
Point = tuple[float, int, int | None]  # a time, nodes updated, nodes down if that is known

_DONE: Final = re.compile(r"(\d{1,9}) of \d+ nodes are updated and available")
_AS_DECLARED: Final = {
    "Paused": RolloutState.PAUSED,
    "OnDelete": RolloutState.ON_DELETE,
    "Held": RolloutState.HELD,
    "AllButSilent": RolloutState.ALL_BUT_SILENT,
}
FLAVOURS: Final = {flavour.short: flavour for flavour in Flavour}
_MAX_VALUES: Final = 256  # a label with more values groups nothing
_MAX_LABELS: Final = 24
_USUAL_LABELS: Final = (
    "topology.kubernetes.io/zone",
    # Pools of nodes, as providers label them.
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node-pool",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
)


class PageModel(msgspec.Struct, frozen=True, kw_only=True):
    """What the page knows of one rollout: the set, the names of the nodes, a byte for each."""

    set: Object
    names: tuple[str, ...]
    labels: Object
    states: bytes


def build_model(
    evaluation: Evaluation,
    history: Sequence[Point],
    now: float,
    forecast: Sequence[tuple[float, int]] = (),
    cache: ModelCache | None = None,
) -> PageModel:
    """Return the page's model of a rollout; `forecast` is its expected end."""
    fleet = evaluation.fleet
    cache = cache or ModelCache()
    waiting = fleet.waiting
    codes = sorted(waiting)[: MAX_REASONS - 1]
    states = cache.states(evaluation, {code: number for number, code in enumerate(codes, 1)})
    counted = {code: len(names) for code, names in waiting.items()}
    lines = {"history": [list(point) for point in history], "forecast": forecast}
    return PageModel(
        set=set_view(fleet, now) | {"waiting": counted, "reasons": codes} | lines,
        names=tuple([row.node for row in fleet.rows]),
        labels=cache.labels(fleet.rows),
        states=states,
    )


def snapshot_message(model: PageModel) -> Object:
    """Return the whole model as it is sent."""
    return {
        "set": model.set,
        "nodes": {"names": model.names, "labels": model.labels},
        "states": base64.b64encode(model.states).decode(),
        "legend": legend(),
    }


def set_view(fleet: FleetView, now: float) -> Object:
    """Return the part of the model that describes the whole rollout."""
    ds, counts = fleet.ds, fleet.counts
    return {
        "kind": ds.flavour.short,
        "namespace": ds.namespace,
        "name": ds.name,
        "state": fleet.state.value,
        "message": sentence(fleet.state, counts, fleet.waiting),
        "counts": msgspec.to_builtins(counts),
        "budget": msgspec.to_builtins(fleet.budget),
        "target": {
            "hash": fleet.target,
            "number": fleet.revision_number(fleet.target),
            "images": list(fleet.images),
        },
        "started": fleet.started,
        "per_minute": None if fleet.per_minute is None else round(fleet.per_minute, 2),
        "seconds_left": None if fleet.seconds_left is None else round(fleet.seconds_left),
        "now": int(now),
        "refusal": fleet.refusal,
        "faults": fleet.faults,
        "missing": list(fleet.missing),
        "paused": ds.strategy.paused,
        "partition": str(ds.strategy.partition),
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": seconds(each.last_transition_time),
            }
            for each in fleet.status.conditions
        ],
        "revisions": [_revision(each) for each in fleet.revisions],
        "end": _end(fleet),
    }


def _end(fleet: FleetView) -> int:
    """Return how many nodes are updated when the rollout has got as far as was declared."""
    return fleet.counts.desired - fleet.counts.held


def _revision(each: Any) -> Object:
    return {
        "number": each.number,
        "hash": each.hash,
        "created": each.created,
        "cause": each.cause,
        "images": list(each.images),
        "pods": each.pods,
        "target": each.target,
    }


class ModelCache:
    """What is worked out again for the nodes alone that have changed.

    A row that is the same object as in the evaluation before stands as it did.
    """

    def __init__(self) -> None:
        self._seen: list[dict[str, str]] = []
        self._made: Object = {}
        self._rows: Sequence[NodeRow] = ()
        self._numbers: dict[str, int] = {}
        self._states = b""

    def labels(self, rows: Sequence[NodeRow]) -> Object:
        """Return the labels by which these nodes can be grouped."""
        labels = [row.labels for row in rows]
        if labels != self._seen:
            self._seen, self._made = labels, group_labels(rows)
        return self._made

    def states(self, evaluation: Evaluation, numbers: dict[str, int]) -> bytes:
        """Return a byte for each node; `numbers` are those of the reasons."""
        rows, known = evaluation.fleet.rows, self._rows
        if len(rows) == len(known) and numbers == self._numbers:
            states = bytearray(self._states)
            pairs = enumerate(zip(rows, known, strict=True))
            for index in [index for index, (row, before) in pairs if row is not before]:
                states[index] = _state_of(evaluation, rows[index], numbers)
        else:
            states = bytearray(_state_of(evaluation, row, numbers) for row in rows)
        self._rows, self._numbers, self._states = rows, numbers, bytes(states)
        return self._states


def _state_of(evaluation: Evaluation, row: NodeRow, numbers: dict[str, int]) -> int:
    """Return the byte of a node."""
    if row.standing in PLAIN:
        return PLAIN[row.standing]
    made, node = evaluation.assessments.get(row.node), evaluation.nodes.get(row.node)
    state = cell_state(
        row,
        evaluation.fleet.target,
        unreachable=node is not None and node.ready == "Unknown",
        given_up=made is not None and made.counts.given_up > 0,
    )
    if row.standing is not NodeStanding.WAITING:
        return int(state)
    return with_reason(state, numbers.get(row.reason, MAX_REASONS))


def group_labels(rows: Sequence[NodeRow]) -> Object:
    """Return the labels by which nodes can be grouped, each as values and an index per node."""
    values: dict[str, dict[str, int]] = {}
    for row in rows:
        for key, value in row.labels.items():
            found = values.setdefault(key, {})
            if len(found) <= _MAX_VALUES:
                found.setdefault(value, 0)
    chosen = [
        key
        for key, found in values.items()
        if len(found) <= _MAX_VALUES and (len(found) > 1 or key in _USUAL_LABELS)
    ]
    groups: Object = {}
    order = {key: place for place, key in enumerate(_USUAL_LABELS)}
    ranked = sorted(chosen, key=lambda key: (order.get(key, len(order)), key))
    for key in ranked[:_MAX_LABELS]:
        known = sorted(values[key])
        at = {value: index for index, value in enumerate(known)}
        groups[key] = {"values": known, "of": [at.get(row.labels.get(key, ""), -1) for row in rows]}
    return groups


def row_document(row: NodeRow, state: int) -> Object:
    """Return one row of the table of nodes."""
    return {
        "node": row.node,
        "state": state,
        "reason": row.reason,
        "message": row.message,
        "revision": row.revision,
        "wanted": row.wanted,
        "pod": row.pod,
        "ready": row.ready,
        "since": row.since,
        "place": row.place,
    }


# --- The list of sets ----------------------------------------------------------------------------


def state_by_status(ds: DaemonSet) -> RolloutState:
    """Return how a rollout stands by its status alone, without its nodes and pods."""
    if ds.metadata.generation > ds.status.observed_generation:
        return RolloutState.UNOBSERVED
    if is_complete(ds):
        return RolloutState.COMPLETE
    reasons = {each.type: (each.status, each.reason) for each in ds.status.conditions}
    status, reason = reasons.get("Progressing", ("True", ""))
    if status == "True":
        return RolloutState.PROGRESSING
    ready, declared = reasons.get("Ready", ("", ""))
    if ready == "True":  # all that waits besides is excused
        reason = declared
    stalled = reasons.get("Stalled", ("", ""))[0] == "True"
    otherwise = RolloutState.STALLED if stalled else RolloutState.WAITING
    return _AS_DECLARED.get(reason, otherwise)


def updated_and_available(ds: DaemonSet) -> int:
    """Return on how many nodes the pod has the target revision and is available.

    No field of the status says it, but the condition Complete does. Without that (another
    controller) it is at most what both numbers allow.
    """
    status = ds.status
    for each in status.conditions:
        found = _DONE.match(each.message) if each.type == COMPLETE else None
        if found is not None:
            return int(found[1])
    return min(status.updated, status.available)


def set_summary(ds: DaemonSet) -> Object:
    """Return one line of the list of sets, by the status alone.

    How many nodes are held or wait is not in the status: the conditions name them.
    """
    fleet = summarise(ds)
    counts = msgspec.structs.replace(fleet.counts, updated=updated_and_available(ds))
    state = state_by_status(ds)
    messages = {each.type: each.message for each in ds.status.conditions}
    message = messages.get("Progressing", "")
    plain = state is RolloutState.COMPLETE and "besides" not in message  # no other node waits
    if plain or state is RolloutState.UNOBSERVED:  # there it is of an earlier spec
        message = ""
    return {
        "kind": ds.flavour.short,
        "namespace": ds.namespace,
        "name": ds.name,
        "state": state.value,
        "message": as_sentence(message) if message else sentence(state, counts, {}),
        "desired": counts.desired,
        "updated": counts.updated,
        "available": counts.available,
        "held": None,
        "waiting": None,
        "started": fleet.started,
        "images": list(fleet.images),
    }
