"""History: the stored revisions of a DaemonSet, with images, change causes and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from everynode.api.daemonset import FieldError
from everynode.api.keys import CHANGE_CAUSE
from everynode.api.objects import ControllerRevision
from everynode.api.times import seconds
from everynode.decide.plan import Plan
from everynode.decide.revisions.target import Revision, read_revision, read_without_template
from everynode.inspect.fleet import RevisionInfo


class StoredRevision(msgspec.Struct, frozen=True):
    """A stored revision; one without a readable template has a fault."""

    revision: Revision
    object: ControllerRevision
    fault: FieldError | None = None


def read_stored(stored: ControllerRevision, uid: str) -> StoredRevision:
    """Return a ControllerRevision of the DaemonSet with that uid, decoded."""
    found = read_revision(stored, uid)
    if isinstance(found, FieldError):
        return StoredRevision(read_without_template(stored, uid), stored, found)
    return StoredRevision(found, stored)


def build_history(
    stored: Iterable[StoredRevision], plan: Plan, pods: Mapping[str, int]
) -> tuple[RevisionInfo, ...]:
    """Return the revisions, oldest first; `pods` counts the pods by the hash of their revision.

    Of several with one hash, as `everynode migrate` may leave them, the newest has the pods.
    """
    ordered = sorted(stored, key=lambda each: (each.revision.number, each.revision.name))
    newest = {each.revision.hash: each for each in ordered}
    found = []
    for each in ordered:
        revision, metadata = each.revision, each.object.metadata
        is_newest = newest[revision.hash] is each
        found.append(
            RevisionInfo(
                number=revision.number,
                hash=revision.hash,
                name=revision.name,
                created=seconds(metadata.creation_timestamp),
                cause=metadata.annotations.get(CHANGE_CAUSE, ""),
                images=read_images(revision.template),
                template=revision.template,
                pods=pods.get(revision.hash, 0) if is_newest else 0,
                target=is_newest and revision.hash == plan.target_hash,
            )
        )
    return tuple(found)


class _Container(msgspec.Struct):
    image: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def read_images(template: bytes) -> tuple[str, ...]:
    """Return the images of a template's containers; none if it cannot be read."""
    try:
        decoded: Any = msgspec.json.decode(template, type=_Template)
    except (msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(each.image for each in decoded.spec.containers)
