"""Objects as they are now, and as they were: the present but for what has changed since.

Order is the order of arrival, so that it is the same in every run; what is gone by now comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar

from everynode.api.affinity import pinned_node
from everynode.api.objects import Pod

T = TypeVar("T")


def node_of(pod: Pod) -> str:
    """Where a pod is or is to be."""
    return pod.spec.node_name or pinned_node(pod.spec.affinity)


class Past(Mapping[str, T]):
    """A mapping as it was. It holds until the mapping of the present changes again."""

    __slots__ = ("_now", "_were")

    def __init__(self, now: Mapping[str, T], were: dict[str, T | None]) -> None:
        self._now = now
        self._were = were  # what has changed since; None where there was nothing

    def back(self, key: str, before: T | None) -> Self:
        """The same as it was one step earlier."""
        return type(self)(self._now, {**self._were, key: before})

    def get(self, key: str, default: Any = None) -> Any:
        """The object under a key."""
        found = self._were[key] if key in self._were else self._now.get(key)
        return default if found is None else found

    def __getitem__(self, key: str) -> T:
        found: T | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        were = self._were
        return were[key] is not None if key in were else key in self._now

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return sum(1 for _ in self.items())

    def values(self) -> Iterator[T]:  # type: ignore[override]
        """All objects."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[str, T]]:  # type: ignore[override]
        """All keys and objects."""
        now, were = self._now, self._were
        for key, value in now.items():
            found = were.get(key, value)
            if found is not None:
                yield key, found
        for key, gone in were.items():
            if gone is not None and key not in now:
                yield key, gone


class Pods(dict[str, Pod]):
    """The pods of the present by uid, and by the node they are on."""

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[Pod, ...]] = {}

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        return self._by_node.get(node, ())

    def change(self, before: Pod | None, after: Pod | None) -> None:
        """A pod came, changed or went."""
        places = self._by_node
        if before is not None and after is not None and (node := node_of(after)) == node_of(before):
            there = places[node]
            places[node] = tuple([after if each is before else each for each in there])
            self[after.uid] = after
            return
        if before is not None:
            there = places[node_of(before)]
            places[node_of(before)] = tuple([each for each in there if each is not before])
            if after is None:
                del self[before.uid]
        if after is not None:
            places[node_of(after)] = (*self.on(node_of(after)), after)
            self[after.uid] = after


class PastPods(Past[Pod]):
    """The pods as they were."""

    __slots__ = ()

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        assert isinstance(self._now, Pods)
        were = self._were
        same = [pod for pod in self._now.on(node) if pod.uid not in were]
        return (*same, *(pod for pod in were.values() if pod is not None and node_of(pod) == node))
