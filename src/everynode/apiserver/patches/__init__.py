"""Patch formats as pure functions: JSON patch, merge patch, strategic merge patch."""
