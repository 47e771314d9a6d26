"""Custom kinds: definitions that become addresses."""

from __future__ import annotations

from everynode.cluster.rules import Rules


class DefinitionRules(Rules):
    """A definition has a status of its own and counts its changes."""

    status = True
    generation = True
