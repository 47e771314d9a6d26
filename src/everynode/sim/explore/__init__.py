"""Exploration: search for broken promises by seeds and crash points; shrink and replay them."""
