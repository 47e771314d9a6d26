"""Sets of fields as trees, in the very form that managedFields carries on the wire.

A key names a field (`f:spec`), the item of a list by its keys (`k:{"name":"c"}`) or by its value
(`v:"x"`). A node belongs to the set if it is empty or holds the key `.`; other nodes only lead to
nodes below. Trees are never changed once made, so that they can be shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everynode.cluster.shape import Shape

Tree = dict[str, "Tree"]
EMPTY: Final[dict[str, Any]] = {}
SELF: Final = "."

# The order in which elements of different sorts are written.
_RANK: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_encode = msgspec.json.Encoder().encode


def has_self(node: Tree) -> bool:
    """Whether the node itself belongs to the set."""
    return not node or SELF in node


def join(children: Tree, *, member: bool) -> Tree | None:
    """A node from what is below it and whether it belongs itself; None if nothing is left."""
    if not member:
        return children or None
    return {SELF: EMPTY, **children} if children else EMPTY


def union(left: Tree, right: Tree) -> Tree:
    """What is in either."""
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
            member = has_self(node) or has_self(other)
            out[key] = _joined(union(_below(other), _below(node)), member=member)
    out.pop(SELF, None)
    return ordered(out)


def difference(left: Tree, right: Tree) -> Tree:
    """What is in left and not in right."""
    out: Tree = {}
    for key, node in left.items():
        if key == SELF:
            continue
        other = right.get(key)
        if other is None:
            out[key] = node
            continue
        rest = join(difference(node, other), member=has_self(node) and not has_self(other))
        if rest is not None:
            out[key] = rest
    return out


def without(left: Tree, right: Tree) -> Tree:
    """What is in left, neither in right nor below anything of right."""
    out: Tree = {}
    for key, node in left.items():
        if key == SELF:
            continue
        other = right.get(key)
        if other is None:
            out[key] = node
        elif not has_self(other):
            rest = join(without(node, other), member=has_self(node))
            if rest is not None:
                out[key] = rest
    return out


def intersection(left: Tree, right: Tree) -> Tree:
    """What is in both."""
    out: Tree = {}
    for key, node in left.items():
        other = right.get(key)
        if key == SELF or other is None:
            continue
        both = join(intersection(node, other), member=has_self(node) and has_self(other))
        if both is not None:
            out[key] = both
    return out


def with_named_fields(tree: Tree, shape: Shape | None) -> Tree:
    """The set with the fields that lead to its members, as far as the type names them."""
    out: Tree = {}
    for key, node in tree.items():
        if key == SELF:
            continue
        inner, named = _step(key, shape)
        grown = _joined(with_named_fields(node, inner), member=named or has_self(node))
        out[key] = grown
    return out


def _step(key: str, shape: Shape | None) -> tuple[Shape | None, bool]:
    if shape is None:
        return None, False
    if key.startswith("f:") and shape.is_map:
        return shape.field(key[2:]), key[2:] in shape.fields
    if key.startswith("k:") and shape.is_list:
        return shape.items, False
    return None, False


def _below(node: Tree) -> Tree:
    return {key: inner for key, inner in node.items() if key != SELF} if SELF in node else node


def _joined(children: Tree, *, member: bool) -> Tree:
    node = join(children, member=member)
    return EMPTY if node is None else node


def ordered(tree: Tree) -> Tree:
    """The same node with its keys in the order in which Kubernetes writes them."""
    return {key: tree[key] for key in sorted(tree, key=_order)}


def _order(key: str) -> tuple[int, str]:
    return (-1, "") if key == SELF else (_RANK.get(key[0], 4), key[2:])


def item_key(item: Any, shape: Shape) -> str:
    """How an item of a list is named in a set; ValueError says why it has no name."""
    if not shape.keys:
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
    for key in sorted(shape.keys):
        value = item.get(key, shape.items.defaults.get(key))
        if value is not None:
            found[key] = value
    if not found:
        names = " ".join(f'"{key}"' for key in shape.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _encode(found).decode()


def written(key: str) -> str:
    """One element of a path as messages show it: `.spec`, `[name="c"]`, `[="x"]`."""
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


def paths(tree: Tree, prefix: str = "") -> Iterator[str]:
    """Every member as a path, those of one level before those below them."""
    for key, node in tree.items():
        if key != SELF and has_self(node):
            yield prefix + written(key)
    for key, node in tree.items():
        if key != SELF and node:
            yield from paths(node, prefix + written(key))
