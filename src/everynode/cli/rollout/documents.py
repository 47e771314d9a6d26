"""Documents: rollouts, nodes and revisions as plain values for -o json and -o yaml.

The fields are listed in docs/command-line.md. Fields may be added; none changes its meaning.
"""

from __future__ import annotations

from typing import Any

from everynode.api.times import format_time
from everynode.cli.access.daemonset_names import RESOURCES
from everynode.inspect.fleet import FleetView, NodeRow, RevisionInfo

Object = dict[str, Any]


def rollout_document(fleet: FleetView) -> Object:
    """Return how a rollout stands."""
    counts, budget = fleet.counts, fleet.budget
    return {
        "apiVersion": RESOURCES[fleet.ds.flavour].api_version,
        "kind": "DaemonSet",
        "namespace": fleet.ds.namespace,
        "name": fleet.ds.name,
        "state": fleet.state.value,
        "since": _time(fleet.started),
        "revision": fleet.revision_number(fleet.target),
        "revisionHash": fleet.target,
        "desired": counts.desired,
        "updated": counts.updated,
        "ready": counts.ready,
        "available": counts.available,
        "updating": counts.updating,
        "waiting": counts.waiting,
        "queued": counts.queued,
        "held": counts.held,
        "notEligible": counts.not_eligible,
        "budget": {
            "field": budget.field,
            "value": budget.written,
            "promised": budget.promised,
            "used": budget.used,
        },
        "nodesPerMinute": None if fleet.per_minute is None else round(fleet.per_minute, 2),
        "secondsLeft": None if fleet.seconds_left is None else round(fleet.seconds_left),
        "waitingNodes": {code: list(names) for code, names in fleet.waiting.items()},
        "refusal": fleet.refusal,
        "faults": fleet.faults,
        "missingPermissions": list(fleet.missing),
    }


def node_document(fleet: FleetView, row: NodeRow) -> Object:
    """Return how one node stands."""
    return {
        "node": row.node,
        "standing": row.standing.value,
        "reason": row.reason,
        "message": row.message,
        "revision": fleet.revision_number(row.revision),
        "revisionHash": row.revision,
        "wantedRevision": fleet.revision_number(row.wanted),
        "wantedRevisionHash": row.wanted,
        "pod": row.pod,
        "ready": row.ready,
        "since": _time(row.since),
        "place": row.place,
    }


def revision_document(revision: RevisionInfo) -> Object:
    """Return one revision of the history, without its template."""
    return {
        "revision": revision.number,
        "hash": revision.hash,
        "name": revision.name,
        "created": _time(revision.created),
        "changeCause": revision.cause,
        "images": list(revision.images),
        "pods": revision.pods,
        "target": revision.target,
    }


def _time(moment: float | None) -> str | None:
    return None if moment is None else format_time(moment)
