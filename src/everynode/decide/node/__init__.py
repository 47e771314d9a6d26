"""Decisions about one node: its state, the steps it needs, and what it waits for."""
