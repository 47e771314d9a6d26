"""Hostile fields: unusual or invalid JSON for every field that we read."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st

Object = dict[str, Any]
Path = tuple[str | int, ...]

TIMES = (
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1969-12-31T23:59:59Z",
    "2023-11-14T23:13:20Z",
    "2023-11-14T22:13:20",
    "2262-04-12T00:00:00.999999Z",
    "2024-02-30T00:00:00Z",
    "yesterday",
    "",
)
TEXTS = (
    "", " ", "²", "٣", "-1", "1e9999", "1e9999%", "9" * 5000, "9" * 5000 + "%", "\x00", "\u2028",
    "🦄", "x" * 70_000, "True", "False", "Unknown", "Failed", "Succeeded", "Running", "null", "{}",
    "[]", "[" * 5000, '{"revision":1}', "3@v2", "999999@v2", "9999999@v2", "²@v2", "@", "v1", "v2",
    "1.5Gi", "1" + "0" * 300, "1e300", "1e301", ".", "-.5m", "nan", "agent@@sha256:::", "//:@",
    "PreparingDelete", "StartInPlaceUpdate", '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]',
)  # fmt: skip
STATES = (
    '{"revision":"v2","updateTimestamp":"9999-12-31T23:59:59Z"}',
    '{"revision":"v2","updateTimestamp":"0001-01-01T00:00:00+14:00","updateResources":true}',
    '{"revision":"v2","containerBatchesRecord":[{"timestamp":"9999-12-31T23:59:59-14:00"}]}',
    '{"nextContainerImages":{"agent":"","other":"x"},"preCheckBeforeNext":{}}',
    '{"nextContainerResources":{"agent":{"requests":{"cpu":1e300,"memory":"²"}}}}',
    '{"nextContainerResources":{"agent":{"limits":{"cpu":99999999999999999999999999}}}}',
    '{"lastContainerStatuses":{"":{},"agent":{"imageID":"\\u0000"}},"updateImages":true}',
)
NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**308, 10**400)

texts = st.sampled_from(TEXTS + STATES + TIMES) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)
numbers = st.sampled_from(NUMBERS) | st.integers()
leaves = st.one_of(
    st.none(), st.booleans(), numbers, st.floats(allow_nan=False, allow_infinity=False), texts
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
) | st.sampled_from([200, 3000]).map(lambda deep: Raw(b"[" * deep + b"]" * deep))
_moments = st.sampled_from(TIMES) | st.datetimes().map(lambda each: each.isoformat() + "Z")


class Raw(bytes):
    """Encoded JSON that is nested too deeply for Python lists."""


def encode(value: Any) -> bytes:
    """Return the JSON of a value that may contain numbers of any size and `Raw` JSON."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, dict):
        return b"{%s}" % b",".join(encode(k) + b":" + encode(v) for k, v in value.items())
    if isinstance(value, list):
        return b"[%s]" % b",".join(map(encode, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode()
    return msgspec.json.encode(value)


def put(base: Any, path: Path, value: Any) -> Any:
    """Return a copy of the JSON with another value at a path; missing parents are created."""
    if not path:
        return value
    made, (step, *rest) = copy.copy(base), path
    if isinstance(step, int):
        made = list(made) if isinstance(made, list) and made else [{}]
        made[0] = put(made[0], tuple(rest), value)
        return made
    made = dict(made) if isinstance(made, dict) else {}
    made[step] = put(made.get(step), tuple(rest), value)
    return made


def fields(kind: Any) -> list[tuple[Path, st.SearchStrategy[Any]]]:
    """Return every path of a decoded struct, with a strategy for unusual values of its type."""
    return list(_walk(msgspec.inspect.type_info(kind), ()))


def _walk(found: Any, path: Path) -> Any:
    inspect = msgspec.inspect
    if isinstance(found, inspect.UnionType):
        parts = [each for each in found.types if not isinstance(each, inspect.NoneType)]
        if isinstance(parts[0], inspect.StructType):
            yield path, anything
            yield from _walk(parts[0], path)
            return
        yield path, st.one_of([_values(each) for each in parts])
    elif isinstance(found, inspect.StructType):
        yield path, anything
        for field in found.fields:
            yield from _walk(field.type, (*path, field.encode_name))
    elif isinstance(found, inspect.VarTupleType | inspect.ListType):
        yield path, st.lists(_values(found.item_type), max_size=3) | anything
        yield from _walk(found.item_type, (*path, 0))
    else:
        yield path, _values(found)


def _values(found: Any) -> st.SearchStrategy[Any]:
    inspect = msgspec.inspect
    if isinstance(found, inspect.DateTimeType):
        return _moments
    if isinstance(found, inspect.StrType):
        return texts
    if isinstance(found, inspect.IntType):
        return numbers
    if isinstance(found, inspect.BoolType):
        return st.booleans()
    if isinstance(found, inspect.FloatType):
        return st.floats(allow_nan=False, allow_infinity=False)
    if isinstance(found, inspect.DictType):
        return st.dictionaries(texts, _values(found.value_type), max_size=3)
    if isinstance(found, inspect.UnionType):
        return st.one_of([_values(each) for each in found.types])
    return anything


def changes(kind: Any, *, at_most: int = 3) -> st.SearchStrategy[list[tuple[Path, Any]]]:
    """Return a strategy for a few fields of a kind, with values of their type or of any type."""
    known = [each for each in fields(kind) if each[0]]
    one = st.sampled_from(range(len(known))).flatmap(
        lambda index: (
            st.tuples(st.just(known[index][0]), known[index][1] | anything)
            if index % 4 == 0
            else st.tuples(st.just(known[index][0]), known[index][1])
        )
    )
    return st.lists(one, min_size=1, max_size=at_most)


def paths(base: Any, path: Path = ()) -> list[Path]:
    """Return every path in a JSON value; of a list only the first item is followed."""
    found = [path] if path else []
    if isinstance(base, dict):
        for key in base:
            found += paths(base[key], (*path, key))
    elif isinstance(base, list) and base:
        found += paths(base[0], (*path, 0))
    return found


def spoil(base: Object, changed: list[tuple[Path, Any]]) -> bytes:
    """Return the JSON of an object after these changes."""
    for path, value in changed:
        base = put(base, path, value)
    return encode(base)
