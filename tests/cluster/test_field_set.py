from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.cluster import field_set
from everynode.cluster.field_set import Tree, item_key, paths
from everynode.cluster.shape import DEDUCED, MAP, SET, Shape, shape_of

Path = tuple[str, ...]


def tree(members: frozenset[Path]) -> Tree:
    """The set with exactly these members."""
    out: Tree = {}
    for path in sorted(members):
        node = out
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return tidy(out)


def tidy(node: Tree) -> Tree:
    children = {key: tidy(child) for key, child in node.items() if key != "."}
    if "." in node and children:
        return {".": {}, **children}
    return children


def members(node: Tree, prefix: Path = ()) -> frozenset[Path]:
    found: set[Path] = set()
    for key, child in node.items():
        if key != ".":
            if field_set.has_self(child):
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

    result = members(field_set.without(tree(left), tree(right)))
    assert result == {path for path in left if not covered(path)}


@given(SETS, SETS)
def test_the_operations_leave_their_arguments_alone(
    left: frozenset[Path], right: frozenset[Path]
) -> None:
    a, b = tree(left), tree(right)
    field_set.union(a, b)
    field_set.difference(a, b)
    field_set.intersection(a, b)
    field_set.without(a, b)
    assert (members(a), members(b)) == (left, right)


def test_keys_are_written_in_the_order_of_the_real_server() -> None:
    mixed: Tree = {'v:"z"': {}, 'k:{"name":"a"}': {}, "f:b": {}, "f:a": {}, ".": {}}
    assert list(field_set.ordered(mixed)) == [".", "f:a", "f:b", 'k:{"name":"a"}', 'v:"z"']


def test_fields_that_lead_to_members_count_where_the_type_names_them() -> None:
    owned: Tree = {
        "f:spec": {"f:nodeSelector": {"f:a": {}}, "f:containers": {'k:{"name":"c"}': {}}}
    }
    grown = field_set.with_named_fields(owned, shape_of("io.k8s.api.core.v1.Pod"))
    assert members(grown) == {
        ("f:spec",),
        ("f:spec", "f:nodeSelector"),
        ("f:spec", "f:nodeSelector", "f:a"),
        ("f:spec", "f:containers"),
        ("f:spec", "f:containers", 'k:{"name":"c"}'),
    }
    assert members(field_set.with_named_fields(owned, DEDUCED)) == members(owned)


def test_paths_are_written_as_in_messages() -> None:
    owned: Tree = {
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


def listing(kind: str, *keys: str, **defaults: Any) -> Shape:
    shape = Shape()
    shape.is_list, shape.listing, shape.keys = True, kind, keys
    shape.items = Shape()
    shape.items.defaults = defaults
    return shape


@pytest.mark.parametrize(
    ("item", "shape", "key"),
    [
        ("a", listing(SET), 'v:"a"'),
        (3, listing(SET), "v:3"),
        ({"name": "a", "x": 1}, listing(MAP, "name"), 'k:{"name":"a"}'),
        ({"b": 1, "a": 2}, listing(MAP, "b", "a"), 'k:{"a":2,"b":1}'),
        ({"port": 80}, listing(MAP, "port", "protocol", protocol="TCP"),
         'k:{"port":80,"protocol":"TCP"}'),
        ({"port": 80}, listing(MAP, "port", "protocol"), 'k:{"port":80}'),
    ],
)  # fmt: skip
def test_items_are_named_by_value_or_by_their_keys(item: Any, shape: Shape, key: str) -> None:
    assert item_key(item, shape) == key


@pytest.mark.parametrize(
    ("item", "shape"),
    [
        ({}, listing(SET)),
        ([], listing(SET)),
        (None, listing(SET)),
        (None, listing(MAP, "name")),
        ("a", listing(MAP, "name")),
        ({"x": 1}, listing(MAP, "name")),
    ],
)
def test_items_without_a_name_are_refused(item: Any, shape: Shape) -> None:
    with pytest.raises(ValueError, match=r"associative list|not supported"):
        item_key(item, shape)
