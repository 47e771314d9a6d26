"""Snapshots: mappings of objects at an earlier time, as the current mapping with changes undone.

Iteration follows the order of creation, so that it is the same in every run; objects that have been
deleted since come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar

from everynode.api.objects import Pod

T = TypeVar("T")


class PastMapping(Mapping[str, T]):
    """A mapping at an earlier time. It is valid until the current mapping changes again."""

    __slots__ = ("_changed", "_now")

    def __init__(self, now: Mapping[str, T], changed: dict[str, T | None]) -> None:
        self._now = now
        # Earlier values of keys that changed since; None where the key did not exist.
        self._changed = changed

    def one_step_back(self, key: str, before: T | None) -> Self:
        """The mapping one change earlier."""
        return type(self)(self._now, {**self._changed, key: before})

    def get(self, key: str, default: Any = None) -> Any:
        """The object under a key."""
        found = self._changed[key] if key in self._changed else self._now.get(key)
        return default if found is None else found

    def __getitem__(self, key: str) -> T:
        found: T | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        changed = self._changed
        return changed[key] is not None if key in changed else key in self._now

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return sum(1 for _ in self.items())

    def values(self) -> Iterator[T]:  # type: ignore[override]
        """All objects."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[str, T]]:  # type: ignore[override]
        """All keys and objects."""
        now, changed = self._now, self._changed
        for key, value in now.items():
            found = changed.get(key, value)
            if found is not None:
                yield key, found
        for key, gone in changed.items():
            if gone is not None and key not in now:
                yield key, gone


class PodIndex(dict[str, Pod]):
    """The current pods by uid and by node."""

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[Pod, ...]] = {}

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        return self._by_node.get(node, ())

    def change(self, before: Pod | None, after: Pod | None) -> None:
        """Apply the creation, change or deletion of a pod."""
        places = self._by_node
        if before is not None and after is not None and (node := after.node) == before.node:
            there = places[node]
            places[node] = tuple([after if each is before else each for each in there])
            self[after.uid] = after
            return
        if before is not None:
            there = places[before.node]
            places[before.node] = tuple([each for each in there if each is not before])
            if after is None:
                del self[before.uid]
        if after is not None:
            places[after.node] = (*self.on(after.node), after)
            self[after.uid] = after


class PastPodIndex(PastMapping[Pod]):
    """The pods at an earlier time, by uid and by node."""

    __slots__ = ()

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        assert isinstance(self._now, PodIndex)
        changed = self._changed
        same = [pod for pod in self._now.on(node) if pod.uid not in changed]
        return (
            *same,
            *(pod for pod in changed.values() if pod is not None and pod.node == node),
        )
