"""Controllers of the next release of Everynode: their table of defaults knows one field more.

What depends on the table is which templates mean the same, what a template's hash is, and what can
be changed in place. The next release is this one, with that field written into every template
before those questions are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.decide import inplace, revisions

THIS: Final = "this"
NEXT: Final = "next"
_FIELD: Final = "hostUsers"  # absent means true; some day a server may say so
_running: ContextVar[str] = ContextVar("edition", default=THIS)
_digest: Final = revisions.digest
_classify: Final = inplace.classify


@lru_cache(maxsize=1024)
def grown(template: bytes) -> bytes:
    """The template with the default that only the next table knows."""
    made: dict[str, Any] = msgspec.json.decode(template)
    spec = made.get("spec")
    if not isinstance(spec, dict) or spec.get(_FIELD) is not None:
        return template
    return msgspec.json.encode({**made, "spec": {**spec, _FIELD: True}})


def context(edition: str) -> Context:
    """Where a controller of this edition runs."""
    found = copy_context()
    if edition != THIS:
        _teach()
        found.run(_running.set, edition)
    return found


def _teach() -> None:
    """From now on ask whose answer is wanted, wherever the table of defaults matters."""
    taught: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (revisions, "digest", _digest_by_edition),
        (inplace, "classify", _classify_by_edition),
    )
    for module, name, function in taught:
        setattr(module, name, function)


def _digest_by_edition(template: bytes) -> bytes:
    return _digest(grown(template) if _running.get() == NEXT else template)


def _classify_by_edition(old: bytes, new: bytes) -> inplace.Change | inplace.Recreate:
    if _running.get() == NEXT:
        return _classify(grown(old), grown(new))
    return _classify(old, new)
