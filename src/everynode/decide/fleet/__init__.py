"""Decisions about all nodes of a DaemonSet: scope, budget, totals, conditions, status."""
