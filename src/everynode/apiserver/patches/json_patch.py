"""JSON patches (RFC 6902) and merge patches (RFC 7386) on decoded values."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.json import decode as _decode
from msgspec.json import encode as _encode

from everynode.api.nulls import drop_nulls

MAX_COPIED_BYTES: Final = 3 << 20  # bytes that all copy operations of one patch may add
_MISSING: Final = object()
_INTEGER: Final = re.compile("[-+]?[0-9]{1,19}")


class OperationError(ValueError):
    """An operation that fails on this document."""


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Return the target after a merge patch; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = apply_merge_patch(out.get(key), value)
        else:
            out[key] = drop_nulls(value)  # as kube-apiserver does within new lists
    return out


def apply_json_patch(document: Any, operations: list[Any]) -> Any:
    """Return the document after all operations, in order; the argument is not changed."""
    patching = _PatchedDocument(document)
    for operation in operations:
        patching.apply(operation)
    return patching.document


class _PatchedDocument:
    """A document that is being patched: copy on write, so that no container is copied twice."""

    def __init__(self, document: Any) -> None:
        self.document = document
        # Copies made here, by id(): these may be changed in place.
        self._copies: dict[int, Any] = {}
        self._copied = 0  # bytes copied by copy operations so far

    def apply(self, operation: Any) -> None:
        """Run one operation."""
        kind, path = operation.get("op"), operation.get("path")
        tokens = _parse_pointer(path)
        if kind == "add":
            self._put(tokens, operation.get("value"), insert=True)
        elif kind == "replace":
            self._put(tokens, operation.get("value"), insert=False)
        elif kind == "remove":
            self._remove(tokens)
        elif kind == "test":
            found = _get(self.document, tokens, strict=False)
            if not _equal_json(None if found is _MISSING else found, operation.get("value")):
                raise OperationError(f"testing value {path} failed")
        elif kind == "move":
            source = _parse_pointer(operation.get("from"))
            value = _get(self.document, source, strict=True)
            self._remove(source)
            self._put(tokens, value, insert=True)
        elif kind == "copy":
            value = _get(self.document, _parse_pointer(operation.get("from")), strict=False)
            self._put(tokens, self._copy(value), insert=True)
        else:
            raise OperationError(f"Unexpected kind: {kind}")

    def _copy(self, value: Any) -> Any:
        """Copy a value deeply. Bounded: a document that copies itself doubles each time."""
        if value is _MISSING or value is None:
            return None
        encoded = _encode(value)
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise OperationError(
                f"Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        return _decode(encoded)

    def _writable_copy(self, value: Any) -> Any:
        """Return the container if it is a copy made here, else a shallow copy of it."""
        if id(value) in self._copies:
            return value
        copied = dict(value) if isinstance(value, dict) else list(value)
        self._copies[id(copied)] = copied
        return copied

    def _parent(self, tokens: list[str], message: str) -> Any:
        """Return the container of the last token, after copying everything on the way to it."""
        if not tokens:
            raise OperationError(message)
        if not isinstance(self.document, dict | list):
            raise OperationError(f"there is nothing at {tokens[0]!r}")
        parent = self.document = self._writable_copy(self.document)
        for token in tokens[:-1]:
            child = _child(parent, token)
            if child is _MISSING or not isinstance(child, dict | list):
                raise OperationError(f"there is nothing at {token!r}")
            key = token if isinstance(parent, dict) else _index(parent, token)
            parent[key] = child = self._writable_copy(child)
            parent = child
        return parent

    def _put(self, tokens: list[str], new: Any, *, insert: bool) -> None:
        parent = self._parent(tokens, "the whole object cannot be replaced")
        if isinstance(parent, dict):
            parent[tokens[-1]] = new
        elif insert:
            parent.insert(_index(parent, tokens[-1], ends=True), new)
        else:
            parent[_index(parent, tokens[-1])] = new

    def _remove(self, tokens: list[str]) -> None:
        parent = self._parent(tokens, "the whole object cannot be removed")
        if isinstance(parent, list):
            del parent[_index(parent, tokens[-1])]
        elif parent.pop(tokens[-1], _MISSING) is _MISSING:
            raise OperationError(f"there is nothing at {tokens[-1]!r}")


def _equal_json(found: Any, expected: Any) -> bool:
    """Whether two values are the same JSON: unlike Python's ==, True is not 1 and 1 is not 1.0."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, dict):
        return found.keys() == expected.keys() and all(
            _equal_json(value, expected[key]) for key, value in found.items()
        )
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(_equal_json, found, expected))
    return bool(found == expected)


def _parse_pointer(path: Any) -> list[str]:
    if not isinstance(path, str):
        raise OperationError(f"the path {path!r} is not a string")
    # kube-apiserver ignores what stands before the first slash.
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _get(value: Any, tokens: list[str], *, strict: bool) -> Any:
    """Return the value at a pointer; unless `strict`, the last token may be missing."""
    for number, token in enumerate(tokens):
        value = _child(value, token)
        if value is _MISSING:
            if strict or number < len(tokens) - 1:
                raise OperationError(f"there is nothing at {token!r}")
            break
    return value


def _child(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, _MISSING)
    if isinstance(value, list):
        return value[_index(value, token)]
    raise OperationError(f"there is nothing at {token!r}")


def _index(items: list[Any], token: str, *, ends: bool = False) -> int:
    """Return the list index of a token; negative ones count from the end, as in kube-apiserver."""
    if ends and token == "-":
        return len(items)
    if not _INTEGER.fullmatch(token):
        raise OperationError(f"{token[:40]!r} is not a list index")
    index = int(token)
    limit = len(items) + 1 if ends else len(items)
    if not -limit <= index < limit:
        raise OperationError(f"the list has no item {index}")
    return index + limit if index < 0 else index
