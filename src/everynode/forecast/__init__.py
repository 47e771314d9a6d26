"""How a rollout would go: the real controller against an embedded cluster on virtual time."""
