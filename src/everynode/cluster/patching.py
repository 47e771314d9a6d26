"""The four kinds of PATCH."""

from __future__ import annotations

from typing import Any, Final

from everynode.cluster.bodies import decode_json
from everynode.cluster.calls import Call
from everynode.cluster.errors import unsupported_media_type
from everynode.kube.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

Object = dict[str, Any]

_ACCEPTED: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


def patched(call: Call, current: Object) -> Object:
    """The object as the patch wants it."""
    media = call.request.content_type.partition(";")[0].strip()
    if media == MERGE_PATCH:
        return merge(current, decode_json(call.request.body))
    raise unsupported_media_type(_ACCEPTED)


def merge(target: Object, patch: Object) -> Object:
    """RFC 7386."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result
