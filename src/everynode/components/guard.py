"""Guards: an error in the handling of one object must not stop the handling of all others.

Users write nearly every field that the components read, and a real API server accepts objects that
the code may not foresee. Handlers of one object, one response or one timer are guarded where they
are called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Generic, ParamSpec, TypeVar

from everynode.kube.watch.cache import Cache
from everynode.kube.watch.cache import Object as _Object
from everynode.log_text import describe

P = ParamSpec("P")
T = TypeVar("T", bound=_Object)

_LOG: Final = logging.getLogger(__name__)


def log_error(error: Exception) -> None:
    """Log in one line what could not be done."""
    _LOG.error("one object could not be handled, others go on: %s", describe(error))


def log_errors(call: Callable[P, None]) -> Callable[P, None]:
    """The same function, but exceptions are logged instead of raised."""

    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            call(*args, **kwargs)
        except Exception as error:
            log_error(error)

    return guarded


class GuardedCache(Cache[T], Generic[T]):
    """A cache whose subscribers can stop neither each other nor the watch that fills it."""

    def subscribe(self, subscriber: Callable[[T | None, T | None], None]) -> None:
        """Call a function with every change, synchronously and in order; its errors are logged."""
        super().subscribe(log_errors(subscriber))
