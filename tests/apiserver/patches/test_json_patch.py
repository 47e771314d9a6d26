from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.patches.json_patch import (
    OperationError,
    apply_json_patch,
    apply_merge_patch,
)


# The examples of RFC 7386, appendix A, and what the real server does beyond them.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a"], {"a": "c"}, {"a": "c"}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [None, {"b": None, "c": [{"d": None}]}]}, {"a": [None, {"c": [{}]}]}),
    ],
)
def test_merge_patches_follow_their_rfc(target: Any, patch: Any, result: Any) -> None:
    assert apply_merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-1", "value": 2}, {"a": [1, 2]}),
        ({"a": {"b": 1}}, {"op": "remove", "path": "/a/b"}, {"a": {}}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": [{"b": 1}]}, {"op": "replace", "path": "/a/0/b", "value": 2}, {"a": [{"b": 2}]}),
        ({"a/b": 1}, {"op": "replace", "path": "/a~1b", "value": 2}, {"a/b": 2}),
        ({"a~b": 1}, {"op": "remove", "path": "/a~0b"}, {}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
        ({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": 1, "b": 1}),
        ({"a": {"b": 1, "c": 2}}, {"op": "test", "path": "/a", "value": {"c": 2, "b": 1}}, None),
        ({"a": 1}, {"op": "test", "path": "/b", "value": None}, None),
    ],
)
def test_operations_follow_their_rfc(document: Any, operation: Any, result: Any) -> None:
    assert apply_json_patch(document, [operation]) == (document if result is None else result)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/list", "value": [True]},
        {"op": "test", "path": "/list/9", "value": None},
        {"op": "test", "path": "/a/b", "value": None},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": "/list/1"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/a/c", "value": 1},
        {"op": "add", "path": "/list/2", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "grow", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_operations_that_cannot_be_carried_out_fail(operation: Any) -> None:
    with pytest.raises(OperationError):
        apply_json_patch({"a": 1, "list": [1]}, [operation])
