"""Objects at one moment of history, cheap to keep for every moment: what did not change is shared.

A shelf is a mapping that is never changed; a change gives another shelf, which shares all but one
small part with the one before. Order is the order of arrival, so that it is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

from everynode.api.affinity import pinned_node
from everynode.api.objects import Pod

T = TypeVar("T")
_PART: Final = 16  # objects that are copied when one changes
_BLOCK: Final = 16  # parts that are copied with them


def node_of(pod: Pod) -> str:
    """Where a pod is or is to be."""
    return pod.spec.node_name or pinned_node(pod.spec.affinity)


class Shelf(Mapping[str, T]):
    """An immutable mapping in blocks of small parts."""

    __slots__ = ("_blocks", "_count", "_where")

    def __init__(self) -> None:
        self._blocks: list[list[dict[str, T]]] = []
        # In which part of which block a key is, if it is there; shared by all that came of the
        # same beginning.
        self._where: dict[str, tuple[int, int]] = {}
        self._count = 0

    def __getitem__(self, key: str) -> T:
        return self._part(key)[key]

    def get(self, key: str, default: T | None = None) -> T | None:  # type: ignore[override]
        """The object under a key."""
        return self._part(key).get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._part(key)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(chain.from_iterable(self._blocks))

    def __len__(self) -> int:
        return self._count

    def values(self) -> Iterator[T]:  # type: ignore[override]
        """All objects, in the order of their arrival."""
        return chain.from_iterable(part.values() for block in self._blocks for part in block)

    def items(self) -> Iterator[tuple[str, T]]:  # type: ignore[override]
        """All keys and objects, in the order of their arrival."""
        return chain.from_iterable(part.items() for block in self._blocks for part in block)

    def put(self, key: str, value: T) -> Shelf[T]:
        """The same with one object more, or another."""
        made, part = self._open(key)
        made._count += key not in part
        part[key] = value
        return made

    def without(self, key: str) -> Shelf[T]:
        """The same without an object."""
        if key not in self:
            return self
        made, part = self._open(key)
        made._count -= 1
        del part[key]
        return made

    def _part(self, key: Any) -> dict[str, T]:
        """The part where a key is if it is there at all; nothing is in those that came later."""
        at = self._where.get(key)
        if at is None:
            return {}
        block, place = at
        blocks = self._blocks
        if block >= len(blocks) or place >= len(blocks[block]):
            return {}
        return blocks[block][place]

    def _open(self, key: str) -> tuple[Shelf[T], dict[str, T]]:
        """Another shelf like this one, and its part for the key, which alone may be changed."""
        where = self._where
        at = where.get(key)
        if at is None:
            at = where[key] = divmod(len(where) // _PART, _BLOCK)
        block, place = at
        made: Shelf[T] = Shelf.__new__(Shelf)
        made._where, made._count = where, self._count
        made._blocks = blocks = self._blocks.copy()
        while len(blocks) <= block:
            blocks.append([])
        parts = blocks[block] = blocks[block].copy()
        while len(parts) <= place:
            parts.append({})
        part = parts[place] = parts[place].copy()
        return made, part


class Pods(Mapping[str, Pod]):
    """Pods by uid, and by the node they are on."""

    __slots__ = ("_all", "_by_node")

    def __init__(self) -> None:
        self._all: Shelf[Pod] = Shelf()
        self._by_node: Shelf[tuple[Pod, ...]] = Shelf()

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        return self._by_node.get(node) or ()

    def __getitem__(self, key: str) -> Pod:
        return self._all[key]

    def get(self, key: str, default: Pod | None = None) -> Pod | None:  # type: ignore[override]
        """The pod of a uid."""
        return self._all.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def values(self) -> Iterator[Pod]:  # type: ignore[override]
        """All pods, in the order of their arrival."""
        return self._all.values()

    def items(self) -> Iterator[tuple[str, Pod]]:  # type: ignore[override]
        """All uids and pods, in the order of their arrival."""
        return self._all.items()

    def changed(self, before: Pod | None, after: Pod | None) -> Pods:
        """The same after a pod came, changed or went."""
        made = Pods.__new__(Pods)
        made._all, made._by_node = self._all, self._by_node
        if before is None or after is None or (node := node_of(before)) != node_of(after):
            made._move(before, after)
        else:
            kept = [after if each.uid == after.uid else each for each in self.on(node)]
            made._by_node = made._by_node.put(node, tuple(kept))
        if after is not None:
            made._all = made._all.put(after.uid, after)
        elif before is not None:
            made._all = made._all.without(before.uid)
        return made

    def _move(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            left = tuple(each for each in self.on(node_of(before)) if each.uid != before.uid)
            self._by_node = self._by_node.put(node_of(before), left)
        if after is not None:
            node = node_of(after)
            self._by_node = self._by_node.put(node, (*self.on(node), after))
