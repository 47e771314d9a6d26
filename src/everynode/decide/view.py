"""What was observed: the inputs of every decision."""

from __future__ import annotations

import enum

import msgspec

from everynode.api.objects import Node, Pod


class Pending(enum.Enum):
    """Our own write on a node that is under way or not seen yet."""

    CREATE = "create"
    DELETE = "delete"
    PATCH = "patch"


class OwnWrite(msgspec.Struct, frozen=True):
    """One own write that the cache does not show yet; the node counts at the worse of both."""

    kind: Pending
    uid: str = ""  # of the pod deleted or patched
    revision: str = ""  # of the pod created


class NodeView(msgspec.Struct, frozen=True):
    """One node as seen now: the node, the DaemonSet's own pods there, own writes not seen yet.

    `node` is None where pods point at a node that does not exist. `retry_at` holds back
    further attempts after a refused write on this node.
    """

    name: str
    node: Node | None
    pods: tuple[Pod, ...] = ()
    writes: tuple[OwnWrite, ...] = ()
    retry_at: float = 0.0
    trouble: str = ""  # why the last write on this node was refused, for the condition
    strangers: tuple[str, ...] = ()  # uids of foreign pods that hold the name we would use
    # The pod whose resize the API server refused for good, and the hash it carried then.
    unresizable: tuple[str, str] = ("", "")
