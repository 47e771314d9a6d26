"""JSON patches (RFC 6902) and merge patches (RFC 7386) on decoded values."""

from __future__ import annotations

from typing import Any, Final

from msgspec.json import encode as _encode

Object = dict[str, Any]

_ABSENT: Final = object()


class OperationError(ValueError):
    """An operation that cannot be carried out on this object."""


def merge_patch(target: Any, patch: Any) -> Any:
    """The target after a merge patch; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = merge_patch(out.get(key), value)
        else:
            out[key] = _without_nulls(value)
    return out


def _without_nulls(value: Any) -> Any:
    """A new value; as observed, the objects in new lists lose their nulls too."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return merge_patch(None, value) if isinstance(value, dict) else value


def json_patch(document: Any, operations: list[Any]) -> Any:
    """The document after all operations, in order; the given one is not changed."""
    for operation in operations:
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: Any) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    steps = _steps(path)
    if kind == "add":
        return _put(document, steps, operation.get("value"), insert=True)
    if kind == "replace":
        return _put(document, steps, operation.get("value"), insert=False)
    if kind == "remove":
        return _remove(document, steps)
    if kind == "test":
        _test(_get(document, steps, strict=False), operation.get("value"), path)
        return document
    if kind == "move":
        source = _steps(operation.get("from"))
        value = _get(document, source, strict=True)
        return _put(_remove(document, source), steps, value, insert=True)
    if kind == "copy":
        value = _get(document, _steps(operation.get("from")), strict=False)
        value = None if value is _ABSENT else value
        return _put(document, steps, value, insert=True)
    raise OperationError(f"Unexpected kind: {kind}")


def _test(found: Any, expected: Any, path: Any) -> None:
    found = None if found is _ABSENT else found
    # As JSON, because to Python a truth is a number.
    if _encode(found, order="sorted") != _encode(expected, order="sorted"):
        raise OperationError(f"testing value {path} failed")


def _steps(path: Any) -> list[str]:
    if not isinstance(path, str):
        raise OperationError(f"the path {path!r} is no text")
    # What is before the first slash is left out, as the real server has it.
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _get(value: Any, steps: list[str], *, strict: bool) -> Any:
    """The value at the end of the steps; without `strict` only the last step may lead nowhere."""
    for number, step in enumerate(steps):
        value = _child(value, step)
        if value is _ABSENT:
            if strict or number < len(steps) - 1:
                raise OperationError(f"there is nothing at {step!r}")
            break
    return value


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _ABSENT)
    if isinstance(value, list):
        return value[_index(value, step)]
    raise OperationError(f"there is nothing at {step!r}")


def _index(items: list[Any], step: str, *, ends: bool = False) -> int:
    """The index that a step means; negative ones count from the end, as the real server has it."""
    if ends and step == "-":
        return len(items)
    try:
        index = int(step)
    except ValueError:
        raise OperationError(f"{step!r} is no index of a list") from None
    limit = len(items) + 1 if ends else len(items)
    if not -limit <= index < limit:
        raise OperationError(f"the list has no item {index}")
    return index + limit if index < 0 else index


def _put(value: Any, steps: list[str], new: Any, *, insert: bool) -> Any:
    if not steps:
        raise OperationError("the whole object cannot be replaced")
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        if rest and step not in value:
            raise OperationError(f"there is nothing at {step!r}")
        child = _put(value[step], rest, new, insert=insert) if rest else new
        return {**value, step: child}
    if isinstance(value, list):
        index = _index(value, step, ends=insert and not rest)
        if insert and not rest:
            return [*value[:index], new, *value[index:]]
        child = new if not rest else _put(value[index], rest, new, insert=insert)
        return [*value[:index], child, *value[index + 1 :]]
    raise OperationError(f"there is nothing at {step!r}")


def _remove(value: Any, steps: list[str]) -> Any:
    if not steps:
        raise OperationError("the whole object cannot be removed")
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        if step not in value:
            raise OperationError(f"there is nothing at {step!r}")
        if rest:
            return {**value, step: _remove(value[step], rest)}
        return {key: child for key, child in value.items() if key != step}
    if isinstance(value, list):
        index = _index(value, step)
        child = [_remove(value[index], rest)] if rest else []
        return [*value[:index], *child, *value[index + 1 :]]
    raise OperationError(f"there is nothing at {step!r}")
