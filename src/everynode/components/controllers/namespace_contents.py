"""Namespace contents: what is left of a terminating namespace, and its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from everynode.api.objects import Partial
from everynode.kube.resources import PODS, Resource

Object = dict[str, Any]

_FINISHED_PHASES: Final = ("Succeeded", "Failed")
# Reason and message of each condition while its status is False.
_SUCCESS_CONDITIONS: Final = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


class _ObjectFinalizers(Partial, frozen=True):
    finalizers: tuple[str, ...] | None = None


class _Spec(Partial, frozen=True):
    termination_grace_period_seconds: int | None = None


class _Status(Partial, frozen=True):
    phase: str | None = None


class RemainingObject(Partial, frozen=True):
    """The fields of an object that delay the deletion of its namespace."""

    metadata: _ObjectFinalizers = _ObjectFinalizers()
    spec: _Spec | None = None
    status: _Status | None = None

    @property
    def grace(self) -> int:
        """The grace period of a pod in seconds; 0 for one that has finished."""
        if self.spec is None or (self.status is not None and self.status.phase in _FINISHED_PHASES):
            return 0
        return self.spec.termination_grace_period_seconds or 0


class _WithMetadata(Partial, frozen=True):
    metadata: _ObjectFinalizers = _ObjectFinalizers()


_decode_pod: Final[Callable[[msgspec.Raw], RemainingObject]] = msgspec.json.Decoder(
    RemainingObject
).decode
_decode_other: Final[Callable[[msgspec.Raw], _WithMetadata]] = msgspec.json.Decoder(
    _WithMetadata
).decode


def read_object(resource: Resource, raw: msgspec.Raw) -> RemainingObject:
    """Decode an object of a resource; only pods have a grace period."""
    return _decode_pod(raw) if resource == PODS else RemainingObject(_decode_other(raw).metadata)


class RemainingContent:
    """Counts the objects that are left after everything was deleted."""

    def __init__(self, namespace: str, *, seconds: float) -> None:
        self._namespace = namespace
        self._seconds = seconds  # since the namespace was deleted
        self._counts: dict[Resource, int] = {}
        self._finalizers: Counter[str] = Counter()
        self._failures: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, resource: Resource, items: Sequence[RemainingObject]) -> None:
        """Count objects of a resource that are left."""
        if not items:
            return
        self._counts[resource] = len(items)
        finalizers = Counter(each for item in items for each in item.metadata.finalizers or ())
        self._finalizers += finalizers
        if not finalizers and max(item.grace for item in items) <= self._seconds:
            kind = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            self._failures.append(
                f"unexpected items still remain in namespace: {self._namespace} for gvr: {kind}"
            )

    def conditions(self, old: Iterable[Object], now: str) -> list[Object]:
        """The conditions of the namespace, new ones after the existing ones."""
        found: dict[str, Object] = {each.get("type", ""): dict(each) for each in old}
        failures = self._failure_conditions()
        for kind, success in _SUCCESS_CONDITIONS.items():
            status = "True" if kind in failures else "False"
            reason, message = failures.get(kind, success)
            before = found.get(kind, {})
            same = before.get("status") == status
            when = before.get("lastTransitionTime", now) if same else now
            found[kind] = {
                "type": kind,
                "status": status,
                "lastTransitionTime": when,
                "reason": reason,
                "message": message,
            }
        return list(found.values())

    def _failure_conditions(self) -> dict[str, tuple[str, str]]:
        failures: dict[str, tuple[str, str]] = {}
        if self._failures:
            shown = f"{len(self._failures)} remaining: {', '.join(sorted(self._failures))}"
            message = f"Failed to delete all resource types, {shown}"
            failures["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
        if PODS in self._counts:
            return failures  # other resources are counted once the pods are gone
        if self._counts:
            counts = [f"{r.plural}.{r.group} has {n}" for r, n in self._counts.items()]
            message = f"Some resources are remaining: {_instances(counts)}"
            failures["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
        if self._finalizers:
            counts = [f"{name} in {n}" for name, n in self._finalizers.items()]
            message = (
                f"Some content in the namespace has finalizers remaining: {_instances(counts)}"
            )
            failures["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        return failures


def _instances(counts: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} resource instances" for count in counts))


def seconds_since(since: datetime | None, now: float) -> float:
    """Seconds since a time; 0 if there is none."""
    return now - since.timestamp() if since is not None else 0.0
