"""Decisions: pure functions from the observed objects and the time to the next writes."""
