"""Export: a forecast as the recording that the page plays. Values only."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.forecast.answer import Forecast
from everynode.forecast.curve import thin_out
from everynode.forecast.recording import NodeState, Recording

Object = dict[str, Any]

# The byte of each state, as in a live fleet, and the words of the legend. A forecast knows no
# reasons: what did not become available until the end is stuck.
_STATES: Final = {
    NodeState.UPDATED: (5, "updated", "its pod has the new version and is available"),
    NodeState.STARTING: (4, "starting", "its new pod is not available yet"),
    NodeState.TAKEN: (3, "taken", "its old pod ends, or its new one is about to be created"),
    NodeState.OLD: (1, "old", "its turn has not come"),
    NodeState.HELD: (2, "held", "partition, selector or a pause keep it at the old version"),
    NodeState.STUCK: (6, "stuck", "its new pod did not become available until the end"),
    NodeState.UNAVAILABLE: (7, "unavailable", "its old pod is not available"),
    NodeState.UNREACHABLE: (
        8,
        "left alone",
        "its kubelet does not report, or it is in maintenance",
    ),
    NodeState.NOT_ELIGIBLE: (0, "no pod wanted", "selector, affinity or taints keep it free"),
}
_MAX_FRAMES: Final = 2_000
_MAX_POINTS: Final = 600
_MAX_VALUES: Final = 64  # of a label that groups
_POSTER: Final = 0.4  # where a recording stands when it is opened, as a share of its time


def export(
    answer: Forecast, recording: Recording, ds: DaemonSet, *, facts: list[Object], summary: str
) -> Object:
    """Return the recording of a forecast; `facts` are figures with a title, a value and a note."""
    names = list(recording.start)
    states = bytes([_STATES[recording.start[name]][0] for name in names])
    curve = [list(point) for point in thin_out(answer.curve, _MAX_POINTS)]
    end = max(recording.end, answer.seconds, 1.0)
    if curve and curve[-1][0] < end:
        curve.append([end, *curve[-1][1:]])
    frames = list(_frames(answer, recording, names, end))
    if frames:
        frames[-1][1]["set"] |= _outcome(answer, summary)
    return {
        "title": "forecast of a rollout",
        "legend": [
            {"state": state, "label": label, "meaning": meaning}
            for state, label, meaning in sorted(_STATES.values())
        ],
        "set": _set_view(answer, ds)
        | (_progress(answer, 0, 0) if frames else _outcome(answer, summary)),
        "nodes": {"names": names, "labels": _labels(recording, names)},
        "states": base64.b64encode(states).decode(),
        "frames": frames,
        "curve": curve,
        "end": end,
        "facts": facts,
        "summary": summary,
        "poster": _POSTER,
    }


def _set_view(answer: Forecast, ds: DaemonSet) -> Object:
    return {
        "kind": "ads" if ds.flavour is Flavour.ADVANCED else "ds",
        "namespace": ds.namespace or "default",
        "name": answer.name,
        "budget": {
            "field": "maxSurge" if answer.surging else "maxUnavailable",
            "written": str(
                ds.strategy.max_surge if answer.surging else ds.strategy.max_unavailable
            ),
            # With maxSurge the new pod comes before the old one goes: no node may be down.
            "promised": 0 if answer.surging else answer.budget,
        },
    }


def _progress(answer: Forecast, updated: int, down: int) -> Object:
    """Return the keys of the set that change while it goes."""
    return {
        "state": "progressing",
        "message": f"{updated:,} of {answer.nodes:,} nodes are updated and available.",
        "counts": {"desired": answer.nodes, "updated": updated},
        "down": down,
    }


def _outcome(answer: Forecast, summary: str) -> Object:
    """Return the keys of the set at the end."""
    down = answer.curve[-1][2] if answer.curve else 0
    return _progress(answer, answer.updated, down) | {"state": answer.ending, "message": summary}


def _frames(
    answer: Forecast, recording: Recording, names: list[str], end: float
) -> Iterator[tuple[float, Object]]:
    """Yield the changes by time; changes that are too close to be seen apart are one frame."""
    index = {name: number for number, name in enumerate(names)}
    step = end / _MAX_FRAMES
    curve, position = answer.curve, 0
    pending: dict[int, int] = {}
    changes = [each for each in recording.changes if each.node in index]
    for number, change in enumerate(changes):
        pending[index[change.node]] = _STATES[change.state][0]
        following = changes[number + 1].seconds if number + 1 < len(changes) else end + 1
        if int(following / step) == int(change.seconds / step):
            continue
        while position + 1 < len(curve) and curve[position + 1][0] <= change.seconds:
            position += 1
        _, updated, down = curve[position] if curve else (0.0, 0, 0)
        yield (
            round(change.seconds, 2),
            {
                "at": list(pending),
                "states": list(pending.values()),
                "set": _progress(answer, updated, down),
            },
        )
        pending = {}


def _labels(recording: Recording, names: list[str]) -> Object:
    """Return the labels by which the nodes can be grouped."""
    found: Object = {}
    for key in sorted({key for labels in recording.labels.values() for key in labels}):
        of = [recording.labels[name].get(key) for name in names]
        values = sorted({value for value in of if value is not None})
        if len(set(of)) > 1 and len(values) <= _MAX_VALUES:
            place = {value: number for number, value in enumerate(values)}
            found[key] = {"values": values, "of": [-1 if v is None else place[v] for v in of]}
    return found
