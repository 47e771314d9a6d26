from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.apply import field_set
from everynode.apiserver.apply.field_set import FieldSet, item_key, paths
from everynode.apiserver.schema.type_tree import DEDUCED, MAP, SET, TypeNode, type_tree_of

Path = tuple[str, ...]


def tree(members: frozenset[Path]) -> FieldSet:
    """The set with exactly these members."""
    out: FieldSet = {}
    for path in sorted(members):
        node = out
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return tidy(out)


def tidy(node: FieldSet) -> FieldSet:
    children = {key: tidy(child) for key, child in node.items() if key != "."}
    if "." in node and children:
        return {".": {}, **children}
    return children


def members(node: FieldSet, prefix: Path = ()) -> frozenset[Path]:
    found: set[Path] = set()
    for key, child in node.items():
        if key != ".":
            if field_set.is_member(child):
                found.add((*prefix, key))
            found |= members(child, (*prefix, key))
    return frozenset(found)


STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"d"'])
PATHS = st.lists(STEPS, min_size=1, max_size=3).map(tuple)
SETS = st.frozensets(PATHS, max_size=6)


@given(SETS, SETS)
def test_trees_behave_as_sets_of_paths(left: frozenset[Path], right: frozenset[Path]) -> None:
    a, b = tree(left), tree(right)
    assert members(field_set.union(a, b)) == left | right
    assert members(field_set.difference(a, b)) == left - right
    assert members(field_set.intersection(a, b)) == left & right


@given(SETS, SETS)
def test_without_takes_away_what_is_below_too(
    left: frozenset[Path], right: frozenset[Path]
) -> None:
    def covered(path: Path) -> bool:
        return any(path[: len(other)] == other for other in right)

    result = members(field_set.recursive_difference(tree(left), tree(right)))
    assert result == {path for path in left if not covered(path)}


@given(SETS, SETS)
def test_the_operations_leave_their_arguments_alone(
    left: frozenset[Path], right: frozenset[Path]
) -> None:
    a, b = tree(left), tree(right)
    field_set.union(a, b)
    field_set.difference(a, b)
    field_set.intersection(a, b)
    field_set.recursive_difference(a, b)
    assert (members(a), members(b)) == (left, right)


def test_keys_are_written_in_the_order_of_the_real_server() -> None:
    mixed: FieldSet = {'v:"z"': {}, 'k:{"name":"a"}': {}, "f:b": {}, "f:a": {}, ".": {}}
    assert list(field_set.sort_elements(mixed)) == [".", "f:a", "f:b", 'k:{"name":"a"}', 'v:"z"']


def test_fields_that_lead_to_members_count_where_the_type_names_them() -> None:
    owned: FieldSet = {
        "f:spec": {"f:nodeSelector": {"f:a": {}}, "f:containers": {'k:{"name":"c"}': {}}}
    }
    grown = field_set.ensure_named_fields(owned, type_tree_of("io.k8s.api.core.v1.Pod"))
    assert members(grown) == {
        ("f:spec",),
        ("f:spec", "f:nodeSelector"),
        ("f:spec", "f:nodeSelector", "f:a"),
        ("f:spec", "f:containers"),
        ("f:spec", "f:containers", 'k:{"name":"c"}'),
    }
    assert members(field_set.ensure_named_fields(owned, DEDUCED)) == members(owned)


def test_paths_are_written_as_in_messages() -> None:
    owned: FieldSet = {
        "f:a": {
            ".": {},
            'k:{"port":80,"protocol":"TCP"}': {"f:name": {}},
            'v:"x"': {},
            "i:3": {},
        },
        "f:b": {},
    }
    assert list(paths(owned)) == [
        ".a",
        ".b",
        '.a[="x"]',
        ".a[3]",
        '.a[port=80,protocol="TCP"].name',
    ]


def list_type(kind: str, *keys: str, **defaults: Any) -> TypeNode:
    type_node = TypeNode()
    type_node.is_list, type_node.list_type, type_node.list_map_keys = True, kind, keys
    type_node.items = TypeNode()
    type_node.items.defaults = defaults
    return type_node


@pytest.mark.parametrize(
    ("item", "type_node", "key"),
    [
        ("a", list_type(SET), 'v:"a"'),
        (3, list_type(SET), "v:3"),
        ({"name": "a", "x": 1}, list_type(MAP, "name"), 'k:{"name":"a"}'),
        ({"b": 1, "a": 2}, list_type(MAP, "b", "a"), 'k:{"a":2,"b":1}'),
        ({"port": 80}, list_type(MAP, "port", "protocol", protocol="TCP"),
         'k:{"port":80,"protocol":"TCP"}'),
        ({"port": 80}, list_type(MAP, "port", "protocol"), 'k:{"port":80}'),
    ],
)  # fmt: skip
def test_items_are_named_by_value_or_by_their_keys(
    item: Any, type_node: TypeNode, key: str
) -> None:
    assert item_key(item, type_node) == key


@pytest.mark.parametrize(
    ("item", "type_node"),
    [
        ({}, list_type(SET)),
        ([], list_type(SET)),
        (None, list_type(SET)),
        (None, list_type(MAP, "name")),
        ("a", list_type(MAP, "name")),
        ({"x": 1}, list_type(MAP, "name")),
    ],
)
def test_items_without_a_name_are_refused(item: Any, type_node: TypeNode) -> None:
    with pytest.raises(ValueError, match=r"associative list|not supported"):
        item_key(item, type_node)
