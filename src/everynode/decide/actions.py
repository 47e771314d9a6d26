"""Actions: decided writes as values, each with its precondition and its cause."""

from __future__ import annotations

import enum
from typing import Any

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """A Kubernetes Event to record on the DaemonSet when the action succeeds."""

    type: str  # Normal or Warning
    reason: str
    message: str


class Cause(enum.StrEnum):
    """Why a pod is written; also the `reason` of log lines and metrics."""

    MISSING = "Missing"  # the node should have a pod and has none
    REPLACE_FINISHED = "ReplaceFinished"  # beside or after a Failed or Succeeded pod
    SURGE = "Surge"  # a target pod beside the old one
    MISPLACED = "Misplaced"  # the node must not keep the pod
    DUPLICATE = "Duplicate"  # one too many on the node
    FINISHED = "Finished"  # Failed or Succeeded, and replaced
    VANISHED = "NodeVanished"  # unscheduled and its node no longer exists
    UPDATE = "Update"  # old revision, taken within the budget
    SURGED = "Surged"  # old revision, its successor is available
    HOOK_DONE = "HookDone"  # PreparingDelete and released by its hook
    HOOK = "Hook"  # marked PreparingDelete
    IN_PLACE = "InPlace"  # a step of an in-place update
    GATE = "Gate"  # a readiness gate written
    ADOPT = "Adopt"
    RELEASE = "Release"
    RELABEL = "Relabel"  # duplicate revisions merged, or a lost hash put back
    PULL = "Pull"  # an image fetched ahead of the update
    PULLED = "Pulled"  # the images are pulled, or the pull failed


class CreatePod(msgspec.Struct, frozen=True):
    """Create the pod of one node. The name is derived, so that a second create is refused."""

    node: str
    revision: str  # hash of the revision whose template it gets
    name: str
    body: dict[str, Any]
    cause: Cause


class DeletePod(msgspec.Struct, frozen=True):
    """Delete one pod, if uid and resourceVersion are still those observed."""

    node: str
    name: str
    uid: str
    resource_version: str
    cause: Cause
    notice: Notice | None = None
    sick: bool = False  # it is sick and is replaced for an update; the next pod notes it (R4)


class PatchPod(msgspec.Struct, frozen=True):
    """Patch one pod. The body carries the precondition: uid and usually resourceVersion."""

    node: str
    name: str
    uid: str
    body: dict[str, Any]
    cause: Cause
    subresource: str = ""  # "", "status" or "resize"
    merge: str = "strategic"  # "strategic" or "merge"
    notice: Notice | None = None


class CreateRevision(msgspec.Struct, frozen=True):
    """Create the ControllerRevision that stores a template."""

    name: str
    body: dict[str, Any]


class PatchRevision(msgspec.Struct, frozen=True):
    """Renumber, annotate or adopt a revision; the body carries uid and resourceVersion."""

    name: str
    uid: str
    body: dict[str, Any]
    merge: str = "merge"  # "strategic" or "merge"


class DeleteRevision(msgspec.Struct, frozen=True):
    """Delete a revision beyond the history limit, or a duplicate."""

    name: str
    uid: str
    resource_version: str


PodAction = CreatePod | DeletePod | PatchPod
RevisionAction = CreateRevision | PatchRevision | DeleteRevision
