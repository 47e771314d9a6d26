"""Errors that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """One clear line that says what is wrong and what to do."""
