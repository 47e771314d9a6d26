"""Errors that a user can fix, and how they are printed."""

from __future__ import annotations

from errno import EDQUOT, EIO, ENOSPC, EPIPE


class UserError(Exception):
    """One clear line that says what is wrong and what to do."""

    exit_code = 1


class UsageError(UserError):
    """A wrong command line: nothing was done."""

    exit_code = 2


def is_output_error(error: BaseException) -> bool:
    """Whether output cannot be written any more: the reader has closed it, or the disk is full."""
    return isinstance(error, OSError) and error.errno in (EPIPE, ENOSPC, EDQUOT, EIO)


def first_user_error(error: BaseException) -> BaseException:
    """Return the first error of an exception group that a user can fix, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            inner = first_user_error(each)
            if isinstance(inner, UserError) or is_output_error(inner):
                return inner
    return error


def replace_control_characters(text: str) -> str:
    """Replace control characters: messages quote files and servers, which could send escapes."""
    return "".join(each if each.isprintable() or each in "\n\t" else "?" for each in text)


def one_line(text: str) -> str:
    """Join the lines of a server's message."""
    return " ".join(text.split())
