"""Errors that a user can mend."""

from __future__ import annotations

from errno import EDQUOT, EIO, ENOSPC, EPIPE


class UserError(Exception):
    """One clear line that says what is wrong and what to do."""

    exit_code = 1


class WrongUsage(UserError):
    """The same about what was typed: nothing was done, and nothing was found out."""

    exit_code = 2


def is_output_lost(error: BaseException) -> bool:
    """Whether what is printed can no longer be: nobody reads it, or there is no room for it."""
    return isinstance(error, OSError) and error.errno in (EPIPE, ENOSPC, EDQUOT, EIO)


def first_to_mend(error: BaseException) -> BaseException:
    """Of many things gone wrong at once, the first that a user can do something about."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            inner = first_to_mend(each)
            if isinstance(inner, UserError) or is_output_lost(inner):
                return inner
    return error
