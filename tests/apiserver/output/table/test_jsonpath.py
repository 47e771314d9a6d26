from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.output.table.jsonpath import PathError, compile_path, custom_cell

OBJECT = {
    "metadata": {"annotations": {"a.b/c": "d"}},
    "spec": {
        "n": 3,
        "parts": [
            {"name": "x", "size": 1, "ok": True},
            {"name": "y", "size": 2},
            {"name": "z", "size": 3, "ok": False},
        ],
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [3]),
        ("spec.n", [3]),
        (".spec['n']", [3]),
        ('.spec["n"]', [3]),
        (".spec.missing.deeper", []),
        (".spec.n.deeper", []),
        (".spec.parts[0].name", ["x"]),
        (".spec.parts[-1].name", ["z"]),
        (".spec.parts[9].name", []),
        (".spec.parts[1:].name", ["y", "z"]),
        (".spec.parts[*].name", ["x", "y", "z"]),
        (".spec.parts[?(@.name=='y')].size", [2]),
        ('.spec.parts[?(@.name == "y")].size', [2]),
        (".spec.parts[?(@.size>1)].name", ["y", "z"]),
        (".spec.parts[?(@.size<=1)].name", ["x"]),
        (".spec.parts[?(@.size!=1)].name", ["y", "z"]),
        (".spec.parts[?(@.ok==true)].name", ["x"]),
        (".spec.parts[?(@.ok)].name", ["x", "z"]),
        (r".metadata.annotations.a\.b/c", ["d"]),
        (".", [OBJECT]),
    ],
)
def test_paths_lead_where_they_say(path: str, found: list[Any]) -> None:
    assert compile_path(path)(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec[", ".spec[x]", ".spec..n", ".parts[?(@.a==)]", ".a[?(@.b==c)]"]
)
def test_a_path_that_is_not_understood_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


@pytest.mark.parametrize(
    ("value", "kind", "cell"),
    [
        (3, "integer", 3),
        (3.7, "integer", 3),
        (3, "number", 3.0),
        (True, "integer", None),
        ("3", "integer", None),
        (True, "boolean", True),
        ("true", "boolean", None),
        ("x", "string", "x"),
        (3, "string", "3"),
        (True, "string", "true"),
        (None, "string", "<no value>"),
        (None, "integer", None),
        ({"b": 1, "a": [None]}, "string", '{"a":[null],"b":1}'),
        ("1970-01-01T00:00:00Z", "date", "60s"),
        ("nonsense", "date", "<invalid>"),
        (3, "date", None),
    ],
)
def test_cells_fit_the_type_of_their_column(value: Any, kind: str, cell: Any) -> None:
    assert custom_cell([value], kind, 60.0) == cell


def test_a_cell_is_empty_where_the_path_finds_nothing() -> None:
    assert custom_cell([], "string", 0.0) is None
