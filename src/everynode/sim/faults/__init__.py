"""Faults of a simulated cluster: in requests, watches, responses and releases."""
