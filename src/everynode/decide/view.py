"""NodeView: one node as observed. It is the input of every decision about the node."""

from __future__ import annotations

import enum

import msgspec

from everynode.api.objects import Node, Pod
from everynode.decide.node.clock_skew import FutureTimes
from everynode.decide.node.room import Room


class WriteKind(enum.Enum):
    """The kind of an own write that the cache does not show yet."""

    CREATE = "create"
    DELETE = "delete"
    PATCH = "patch"


class OwnWrite(msgspec.Struct, frozen=True):
    """One own write that the cache does not show yet.

    Until then the node is counted at the worse of its states before and after the write.
    """

    kind: WriteKind
    uid: str = ""  # of the pod deleted or patched
    revision: str = ""  # of the pod created


class NodeView(msgspec.Struct, frozen=True):
    """One node as observed: the Node, the DaemonSet's own pods on it, own writes not seen yet.

    `node` is None if pods are pinned to a node that does not exist. After a refused write nothing
    is written on this node before `retry_at`.
    """

    name: str
    node: Node | None
    pods: tuple[Pod, ...] = ()
    # The last own pod that was seen here, while there is none: a held node keeps its revision (R3).
    last_pod: Pod | None = None
    writes: tuple[OwnWrite, ...] = ()
    retry_at: float = 0.0
    trouble: str = ""  # why the last write on this node was refused, for the condition
    name_holders: tuple[str, ...] = ()  # uids of foreign pods that have the name we would use
    # uid and revision hash of a pod whose resize the API server refused and will always refuse.
    unresizable: tuple[str, str] = ("", "")
    emptied_sick: bool = False  # the pod that we deleted here for the update was sick
    ahead: FutureTimes = ()  # times of its pods that were in the future when first seen
    room: Room | None = None  # what was observed of its resources, where that matters (R4)
