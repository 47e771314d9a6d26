"""One sentence on how a rollout stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from everynode.inspect.fleet import Counts, RolloutState

_SENTENCES: Final = {
    RolloutState.WAITING: "Nothing moves at the moment",
    RolloutState.STALLED: "Nothing moves until what nodes wait for has changed",
    RolloutState.PAUSED: "The update is paused; nodes stay as they are until it is resumed",
    RolloutState.HELD: "Done as far as partition and selector go; other nodes keep their revision",
    RolloutState.ALL_BUT_SILENT: "Done but for nodes whose kubelet does not report",
    RolloutState.ON_DELETE: "A node is updated when its pod is deleted (OnDelete)",
    RolloutState.UNOBSERVED: "The controller has not seen the newest spec; does it run?",
}
_MAX_NAMED: Final = 3  # reasons
Waiting = Mapping[str, Sequence[str]]  # names of nodes by reason


def sentence(state: RolloutState, counts: Counts, waiting: Waiting) -> str:
    """Return how a rollout stands, for people, and what nodes wait for."""
    sentences = [_state(state, counts), *_waiting(waiting)]
    return " ".join(each if each.endswith("?") else f"{each}." for each in sentences)


def as_sentence(message: str) -> str:
    """Return the message of a condition as a sentence."""
    return f"{message[0].upper()}{message[1:]}" + "." * (message[-1] not in ".!?")


def name_trouble(resource: str, trouble: str) -> str:
    """Return the trouble of a watch with the name of what is watched."""
    return trouble if resource in trouble else f"{resource}: {trouble}"


def help_with(trouble: str) -> str:
    """Return what the reader can do about the trouble of a watch."""
    if not trouble:
        return ""
    if "forbidden" in trouble:
        return "ask a cluster administrator for this right"
    return "check that the API server runs and that you are logged in"


def _state(state: RolloutState, counts: Counts) -> str:
    if state in _SENTENCES:
        return _SENTENCES[state]
    if state is RolloutState.COMPLETE:
        if not counts.desired:
            return "No node should have a pod"
        return f"All {counts.desired:,} nodes are updated and available"
    return f"{counts.updated:,} of {counts.desired:,} nodes are updated and available"


def _waiting(waiting: Waiting) -> list[str]:
    """Return a sentence on how many nodes wait, and for what most of them do; none if none do."""
    if not waiting:
        return []
    total = sum(len(names) for names in waiting.values())
    named = [f"{len(names):,} {code}" for code, names in waiting.items()]
    more = ["others"] if len(named) > _MAX_NAMED else []
    nodes = "1 node waits" if total == 1 else f"{total:,} nodes wait"
    return [f"{nodes}: {', '.join([*named[:_MAX_NAMED], *more])}"]
