"""Everynode: one pod on every node, rolled out safely."""
