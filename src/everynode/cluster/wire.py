"""What Kubernetes adds to the table of types: field numbers, and scalars that are optional.

The table is made by hack/protobuf-fields and read once, when first asked for.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec


class WireField(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One field of a message; an empty name means that its own fields take its place."""

    number: int
    name: str
    sort: Literal["one", "list", "map"]
    type: str  # a scalar (string, int, bool, double, bytes) or another message


class Wire(msgspec.Struct, frozen=True):
    """All messages, and for each type the scalar fields whose zero differs from their absence."""

    messages: dict[str, tuple[WireField, ...]]
    pointers: dict[str, tuple[str, ...]]

    def keeps_zero(self, type_name: str, field: str) -> bool:
        """Whether a zero that a client sends for a scalar field is kept."""
        known = type_name in self.messages
        return not known or field in self.pointers.get(type_name, ())


@cache
def load() -> Wire:
    """The whole table, read once."""
    import pkgutil  # late: importlib.resources costs 20 ms, this one 2

    raw = pkgutil.get_data("everynode.cluster", "protobuf.json")
    assert raw is not None, "protobuf.json is part of the package"
    return msgspec.json.decode(raw, type=Wire)
