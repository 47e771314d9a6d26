"""How a rollout stands: a read-only snapshot of a cluster, and what `decide` says about it."""
