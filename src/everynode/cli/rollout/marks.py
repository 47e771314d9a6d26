"""Marks of nodes and colours of states, the same in every command."""

from __future__ import annotations

from typing import Final

from everynode.cli.terminal.style import Style
from everynode.inspect.fleet import NodeStanding, RolloutState

# Letter for plain text, sign for a terminal, colour.
_MARKS: Final = {
    NodeStanding.UPDATED: ("N", "●", "green"),
    NodeStanding.UPDATING: ("+", "◐", "yellow"),
    NodeStanding.WAITING: ("!", "✗", "red"),
    NodeStanding.QUEUED: ("o", "○", "blue"),
    NodeStanding.HELD: ("h", "◇", "cyan"),
    NodeStanding.NOT_ELIGIBLE: (".", "·", "bright_black"),
}
STATE_COLOURS: Final = {
    RolloutState.COMPLETE: "green",
    RolloutState.PROGRESSING: "yellow",
    RolloutState.WAITING: "red",
    RolloutState.STALLED: "red",
    RolloutState.PAUSED: "cyan",
    RolloutState.HELD: "cyan",
    RolloutState.ALL_BUT_SILENT: "green",
    RolloutState.ON_DELETE: "cyan",
    RolloutState.UNOBSERVED: "yellow",
}


def colour_of(standing: NodeStanding) -> str:
    """Return the colour of a node that stands like this."""
    return _MARKS[standing][2]


def mark(standing: NodeStanding, style: Style) -> str:
    """Return the mark of a node."""
    letter, sign, colour = _MARKS[standing]
    return style.paint(sign if style.signs else letter, colour)
