"""Next release: controllers whose table of template defaults has one more field.

The table decides which templates are equal, what a template's hash is, and what can be changed in
place. A process of the next release gets `with_next_default` as its `extra_defaults`
(`ControllerOptions`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

THIS: Final = "this"
NEXT: Final = "next"
_FIELD: Final = "hostUsers"  # absent means true; a later API server may write the default


@lru_cache(maxsize=1024)
def with_next_default(template: bytes) -> bytes:
    """The template with the default that only the next release's table has."""
    decoded: dict[str, Any] = msgspec.json.decode(template)
    spec = decoded.get("spec")
    if not isinstance(spec, dict) or spec.get(_FIELD) is not None:
        return template
    return msgspec.json.encode({**decoded, "spec": {**spec, _FIELD: True}})
