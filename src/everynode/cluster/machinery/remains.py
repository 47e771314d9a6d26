"""What is left of a namespace that is ending, and the conditions that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from everynode.api.objects import Partial
from everynode.kube.resources import PODS, Resource

Object = dict[str, Any]

_OVER: Final = ("Succeeded", "Failed")
# What is said of each matter while nothing is wrong with it.
_FINE: Final = {
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


class _Meta(Partial, frozen=True):
    finalizers: tuple[str, ...] | None = None


class _Spec(Partial, frozen=True):
    termination_grace_period_seconds: int | None = None


class _Status(Partial, frozen=True):
    phase: str | None = None


class Item(Partial, frozen=True):
    """An object as far as it holds up the end of its namespace."""

    metadata: _Meta = _Meta()
    spec: _Spec | None = None
    status: _Status | None = None

    @property
    def grace(self) -> int:
        """How long a pod may take to stop; none for one that runs no more."""
        if self.spec is None or (self.status is not None and self.status.phase in _OVER):
            return 0
        return self.spec.termination_grace_period_seconds or 0


class _Only(Partial, frozen=True):
    metadata: _Meta = _Meta()


_decode_pod: Final[Callable[[msgspec.Raw], Item]] = msgspec.json.Decoder(Item).decode
_decode_other: Final[Callable[[msgspec.Raw], _Only]] = msgspec.json.Decoder(_Only).decode


def read_item(resource: Resource, raw: msgspec.Raw) -> Item:
    """An object of a kind; only a pod has a time to stop in."""
    return _decode_pod(raw) if resource == PODS else Item(_decode_other(raw).metadata)


class Remains:
    """Counts what is still there after everything was told to go."""

    def __init__(self, namespace: str, *, seconds: float) -> None:
        self._namespace = namespace
        self._seconds = seconds  # since the namespace began to end
        self._counts: dict[Resource, int] = {}
        self._finalizers: Counter[str] = Counter()
        self._failures: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, resource: Resource, items: Sequence[Item]) -> None:
        """These objects of a kind are still there."""
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
        """The conditions of the namespace, new ones after those that were there."""
        found: dict[str, Object] = {each.get("type", ""): dict(each) for each in old}
        wrong = self._wrong()
        for kind, fine in _FINE.items():
            status = "True" if kind in wrong else "False"
            reason, message = wrong.get(kind, fine)
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

    def _wrong(self) -> dict[str, tuple[str, str]]:
        wrong: dict[str, tuple[str, str]] = {}
        if self._failures:
            shown = f"{len(self._failures)} remaining: {', '.join(sorted(self._failures))}"
            message = f"Failed to delete all resource types, {shown}"
            wrong["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
        if PODS in self._counts:
            return wrong  # the rest is only counted once they are gone
        if self._counts:
            counts = [f"{r.plural}.{r.group} has {n}" for r, n in self._counts.items()]
            message = f"Some resources are remaining: {_instances(counts)}"
            wrong["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
        if self._finalizers:
            counts = [f"{name} in {n}" for name, n in self._finalizers.items()]
            message = (
                f"Some content in the namespace has finalizers remaining: {_instances(counts)}"
            )
            wrong["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        return wrong


def _instances(counts: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} resource instances" for count in counts))


def age(since: datetime | None, now: float) -> float:
    """How many seconds ago that was."""
    return now - since.timestamp() if since is not None else 0.0
