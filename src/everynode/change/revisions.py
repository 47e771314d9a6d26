"""Going back: which revision is meant, and the edit that brings its template again."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.api.daemonset import DaemonSet
from everynode.api.template_equality import normalise
from everynode.change.edits import Edit, Object, go_back
from everynode.errors import UserError
from everynode.inspect.evaluate import evaluate
from everynode.inspect.fleet import RevisionInfo
from everynode.inspect.snapshot import SnapshotReader
from everynode.kube.client import Client
from everynode.kube.permissions import missing_permissions


async def edit_to_revision(
    client: Client, ds: DaemonSet, stored: Object, number: int | None, now: float
) -> Edit:
    """Return the edit to a revision, or to the one before the current; raises UserError."""
    snapshot = await SnapshotReader(client).read_history(ds, with_pods=False)
    if snapshot.revisions is None:
        raise missing_permissions(list(snapshot.missing))
    revisions = evaluate(snapshot, now).fleet.revisions
    chosen = choose(revisions, stored, number)
    if chosen is None:
        known = ", ".join(str(each.number) for each in revisions) or "none"
        wanted = f"no revision {number}" if number else "no earlier revision"
        raise UserError(f"{ds.short_name} has {wanted}; there are: {known}")
    return go_back(stored, chosen.template, number=chosen.number, cause=chosen.cause)


def choose(
    revisions: Sequence[RevisionInfo], stored: Object, number: int | None
) -> RevisionInfo | None:
    """Return the revision of that number, or the newest that is not the current template."""
    if number is not None:
        return next((each for each in revisions if each.number == number), None)
    current = normalise(stored["spec"]["template"])
    others = [each for each in revisions if each.template and normalise(each.template) != current]
    return max(others, key=lambda each: each.number, default=None)
