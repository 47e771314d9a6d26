"""Field sets: sets of field paths, stored as trees in the form of managedFields (fieldsV1).

A key names a field (`f:spec`), a list item by its keys (`k:{"name":"c"}`) or by its value
(`v:"x"`). A node is a member of the set if it is empty or holds the key `.`; other nodes only lead
to members below. Field sets are never changed once made, so that they can be shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everynode.apiserver.schema.type_tree import TypeNode

FieldSet = dict[str, Any]  # of nodes of the same form
EMPTY: Final[dict[str, Any]] = {}
SELF: Final = "."

# The order in which path elements of different types are written.
_RANK: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_encode = msgspec.json.Encoder().encode


def is_field_set(value: Any) -> bool:
    """Whether a value is a field set; clients may send anything in its place."""
    if not isinstance(value, dict):
        return False
    return all(
        node == {} if key == SELF else _is_path_element(key) and is_field_set(node)
        for key, node in value.items()
    )


def _is_path_element(key: str) -> bool:
    """Whether a key is one of the four types of path elements, with JSON where it is needed."""
    sort, text = key[:2], key[2:]
    if sort == "f:":
        return True
    if sort == "i:":
        return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20
    if sort not in ("k:", "v:"):
        return False
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError):
        return False
    return sort == "v:" or isinstance(value, dict)


def is_member(node: FieldSet) -> bool:
    """Whether the node itself is a member of the set."""
    return not node or SELF in node


def make_node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Make a node from its children and whether it is a member; None if it would be neither."""
    if not member:
        return children or None
    return {SELF: EMPTY, **children} if children else EMPTY


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of either set."""
    if not left or left is right:
        return right
    if not right:
        return left
    out = dict(left)
    for key, node in right.items():
        if key == SELF:
            continue
        other = left.get(key)
        if other is None:
            out[key] = node
        elif other is not node:
            member = is_member(node) or is_member(other)
            out[key] = _make_node_or_empty(union(_children(other), _children(node)), member=member)
    out.pop(SELF, None)
    return sort_elements(out)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of left that are not in right."""
    out: FieldSet = {}
    for key, node in left.items():
        if key == SELF:
            continue
        other = right.get(key)
        if other is None:
            out[key] = node
            continue
        rest = make_node(difference(node, other), member=is_member(node) and not is_member(other))
        if rest is not None:
            out[key] = rest
    return out


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of left that are neither in right nor below a member of right."""
    out: FieldSet = {}
    for key, node in left.items():
        if key == SELF:
            continue
        other = right.get(key)
        if other is None:
            out[key] = node
        elif not is_member(other):
            rest = make_node(recursive_difference(node, other), member=is_member(node))
            if rest is not None:
                out[key] = rest
    return out


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of both sets."""
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if key == SELF or other is None:
            continue
        both = make_node(intersection(node, other), member=is_member(node) and is_member(other))
        if both is not None:
            out[key] = both
    return out


def ensure_named_fields(tree: FieldSet, type_node: TypeNode | None) -> FieldSet:
    """Add the fields on the way to each member, as far as the type declares them."""
    out: FieldSet = {}
    for key, node in tree.items():
        if key == SELF:
            continue
        inner, named = _child_type(key, type_node)
        grown = _make_node_or_empty(
            ensure_named_fields(node, inner), member=named or is_member(node)
        )
        out[key] = grown
    return out


def _child_type(key: str, type_node: TypeNode | None) -> tuple[TypeNode | None, bool]:
    if type_node is None:
        return None, False
    if key.startswith("f:") and type_node.is_map:
        return type_node.field(key[2:]), key[2:] in type_node.fields
    if key.startswith("k:") and type_node.is_list:
        return type_node.items, False
    return None, False


def _children(node: FieldSet) -> FieldSet:
    return {key: inner for key, inner in node.items() if key != SELF} if SELF in node else node


def _make_node_or_empty(children: FieldSet, *, member: bool) -> FieldSet:
    node = make_node(children, member=member)
    return EMPTY if node is None else node


def sort_elements(tree: FieldSet) -> FieldSet:
    """Return the node with its keys in the order in which Kubernetes writes them."""
    return {key: tree[key] for key in sorted(tree, key=_sort_key)}


def _sort_key(key: str) -> tuple[int, str]:
    return (-1, "") if key == SELF else (_RANK.get(key[0], 4), key[2:])


def item_key(item: Any, type_node: TypeNode) -> str:
    """Return the path element of a list item; ValueError says why it has none."""
    if not type_node.list_map_keys:
        if isinstance(item, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        if item is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        return "v:" + _encode(item).decode()
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    found: dict[str, Any] = {}
    for key in sorted(type_node.list_map_keys):
        value = item.get(key, type_node.items.defaults.get(key))
        if value is not None:
            found[key] = value
    if not found:
        names = " ".join(f'"{key}"' for key in type_node.list_map_keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _encode(found).decode()


def format_path_element(key: str) -> str:
    """Format a path element as messages show it: `.spec`, `[name="c"]`, `[="x"]`."""
    sort, text = key[0], key[2:]
    if sort == "f":
        return f".{text}"
    if sort == "v":
        return f"[={text}]"
    if sort == "k":
        pairs = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        inner = ",".join(f"{name}={bytes(value).decode()}" for name, value in pairs.items())
        return f"[{inner}]"
    return f"[{text}]"


def paths(tree: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the path of every member, those of one level before those below them."""
    for key, node in tree.items():
        if key != SELF and is_member(node):
            yield prefix + format_path_element(key)
    for key, node in tree.items():
        if key != SELF and node:
            yield from paths(node, prefix + format_path_element(key))
