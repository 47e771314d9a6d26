"""Changing DaemonSets: which ones, what is edited, and how it is written."""
