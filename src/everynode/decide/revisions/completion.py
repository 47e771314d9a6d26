"""Completion: notes on the target's revision that the target was once available on every node.

While nodes are held, a node of which nothing is known then gets the target (R3), and the revision
before it is no longer kept beyond revisionHistoryLimit.
"""

from __future__ import annotations

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.decide.actions import PatchRevision
from everynode.decide.revisions.target import Revision


def completion_note(ds: DaemonSet, target: Revision) -> PatchRevision | None:
    """Return the write that notes that the target is complete; None if that is noted."""
    if target.completed or not target.stored:
        return None
    body = {
        "metadata": {
            "annotations": {keys.COMPLETED: f"{ds.metadata.generation}/{ds.uid}"},
            "uid": target.uid,
            "resourceVersion": target.resource_version,
        }
    }
    return PatchRevision(target.name, target.uid, body)
