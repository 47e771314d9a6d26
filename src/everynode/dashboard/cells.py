"""CellState: how one node is shown in the grid, as a byte; and the legend that explains it."""

from __future__ import annotations

import enum
from typing import Any, Final

from everynode.decide.node import reasons
from everynode.inspect.fleet import NodeRow, NodeStanding


class CellState(enum.IntEnum):
    """The state of one node on the page. The numbers are part of the protocol of the page."""

    NOT_ELIGIBLE = 0
    OLD = 1
    HELD = 2
    TAKEN = 3
    STARTING = 4
    UPDATED = 5
    WAITING = 6
    SET_ASIDE = 7
    UNREACHABLE = 8


_WORDS: Final = {
    CellState.NOT_ELIGIBLE: ("no pod wanted", "node selector, affinity or taints keep it free"),
    CellState.OLD: ("old", "its turn has not come; its pod has an earlier revision"),
    CellState.HELD: ("held", "partition, selector or a pause keep it at its revision"),
    CellState.TAKEN: ("taken", "its old pod ends, or its new one is about to be created"),
    CellState.STARTING: ("starting", "its new pod exists and is not available yet"),
    CellState.UPDATED: ("updated", "its pod has the target revision and is available"),
    CellState.WAITING: ("waiting", "something outside of the controller has to change"),
    CellState.SET_ASIDE: (
        "set aside",
        "sick before the update came and not cured by it; not counted",
    ),
    CellState.UNREACHABLE: ("unreachable", "its kubelet does not report: Ready is Unknown"),
}
# Reasons that a byte can tell apart; all others have the last number.
MAX_REASONS: Final = 15
# Codes of nodes whose new pod does not exist yet or whose pod ends.
_NOT_THERE: Final = frozenset(
    (reasons.MISSING, reasons.TERMINATING, reasons.REPLACING, reasons.WRITING)
)
# Standings that are shown alike, whatever else is true of the node.
PLAIN: Final = {
    NodeStanding.NOT_ELIGIBLE: CellState.NOT_ELIGIBLE,
    NodeStanding.UPDATED: CellState.UPDATED,
}
_BY_STANDING: Final = {
    **PLAIN,
    NodeStanding.QUEUED: CellState.OLD,
    NodeStanding.HELD: CellState.HELD,
    NodeStanding.WAITING: CellState.WAITING,
}


def cell_state(
    row: NodeRow, target: str, *, unreachable: bool = False, given_up: bool = False
) -> CellState:
    """Return how a node is shown.

    `target` is the hash of the target revision; `unreachable` says that the kubelet is silent,
    `given_up` that the node does not count for the budget any more (docs/rules.md#r4).
    """
    standing = row.standing
    if standing in PLAIN:
        return PLAIN[standing]
    if unreachable:
        return CellState.UNREACHABLE
    if given_up:
        return CellState.SET_ASIDE
    if standing is NodeStanding.UPDATING:
        there = bool(row.pod) and row.revision == target and row.reason not in _NOT_THERE
        return CellState.STARTING if there else CellState.TAKEN
    return _BY_STANDING[standing]


def with_reason(state: CellState, number: int) -> int:
    """Return the byte of a node: its state in the lower half, the number of its reason above."""
    return int(state) | min(number, MAX_REASONS) << 4


def state_of(byte: int) -> CellState:
    """Return the state in a byte."""
    return CellState(byte & 15)


def label_of(byte: int) -> str:
    """Return the word for the state in a byte."""
    return _WORDS[state_of(byte)][0]


def legend() -> list[dict[str, Any]]:
    """Return the states with their words, in the order in which the page lists them."""
    return [
        {"state": int(state), "label": label, "meaning": meaning}
        for state, (label, meaning) in _WORDS.items()
    ]
