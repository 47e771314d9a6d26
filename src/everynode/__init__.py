"""Everynode: one pod on every node, rolled out safely."""

__version__ = "0.1.0"
