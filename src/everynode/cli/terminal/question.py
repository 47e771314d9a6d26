"""Questions: asked on stderr, where a person is there to answer."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click


def can_ask() -> bool:
    """Whether a person sees a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a question at once; raises click.Abort.

    asyncio handles Ctrl-C in the event loop, which waits for the answer.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    finally:
        signal.signal(signal.SIGINT, before)
