"""One sentence on how a rollout stands."""

from __future__ import annotations

from typing import Final

from everynode.inspect.fleet import Counts, RolloutState

_SENTENCES: Final = {
    RolloutState.WAITING: "Nothing moves at the moment, and nodes wait for something.",
    RolloutState.STALLED: "Nothing moves until what nodes wait for has changed.",
    RolloutState.PAUSED: "The update is paused; nodes stay as they are until it is resumed.",
    RolloutState.HELD: "Done as far as partition and selector go; other nodes keep their revision.",
    RolloutState.ALL_BUT_SILENT: "Done but for nodes whose kubelet does not report.",
    RolloutState.ON_DELETE: "A node is updated when its pod is deleted (OnDelete).",
    RolloutState.UNOBSERVED: "The controller has not seen the newest spec; does it run?",
}


def sentence(state: RolloutState, counts: Counts) -> str:
    """Return how a rollout stands, for people."""
    if state in _SENTENCES:
        return _SENTENCES[state]
    if state is RolloutState.COMPLETE:
        if not counts.desired:
            return "No node should have a pod."
        return f"All {counts.desired:,} nodes are updated and available."
    return f"{counts.updated:,} of {counts.desired:,} nodes are updated."
