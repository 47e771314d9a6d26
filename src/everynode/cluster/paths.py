"""What an address leads to."""

from __future__ import annotations

from typing import Final

from everynode.cluster.calls import Place
from everynode.cluster.errors import no_such_resource, not_found
from everynode.cluster.kinds import Kind, Registry

_MOST: Final = 4096  # addresses to remember


def locate(path: str, kinds: Registry) -> Place | None:
    """The place of a path; None for paths outside the API or in groups that are not served.

    A refusal for resources that a served group does not have, as the real server answers them.
    """
    found: Place | None = kinds.places.get(path)
    if found is None:
        found = _next_door(path, kinds) or _locate(path, kinds)
        if len(kinds.places) >= _MOST:
            kinds.places.clear()
        kinds.places[path] = found
    return found


def _next_door(path: str, kinds: Registry) -> Place | None:
    """The place of a path a step or two below a known one: objects are new, their kinds are not."""
    above, _, last = path.rpartition("/")
    place = kinds.places.get(above)
    if place is None:
        further, _, name = above.rpartition("/")
        place = _step(kinds.places.get(further), name)
    return _step(place, last)


def _step(place: Place | None, word: str) -> Place | None:
    """Where one more word of an address leads from a place, if that is clear."""
    if place is None or place.subresource or not word:
        return None
    kind, namespace = place.kind, place.namespace
    if not place.name:
        return Place(kind, namespace, word) if kind.namespaced == bool(namespace) else None
    return Place(kind, namespace, place.name, word) if kind.subresource(word) else None


def _locate(path: str, kinds: Registry) -> Place | None:
    match path.split("/")[1:]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest and group:
            pass
        case _:
            return None
    if not kinds.serves(group, version):
        return None
    place = _place(rest, group, version, kinds)
    if place is None:
        raise no_such_resource()
    return place


def _place(rest: list[str], group: str, version: str, kinds: Registry) -> Place | None:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _part_of_namespace(rest, group):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return None
    kind = kinds.find(group, version, rest[0])
    if kind is None or not _scoped(kind, namespace, len(rest)):
        return None
    if len(rest) == 3 and kind.subresource(rest[2]) is None:
        if kind.custom:
            raise not_found(kind, rest[1])
        return None
    name, part = [*rest[1:], "", ""][:2]
    return Place(kind, namespace, name, part)


def _part_of_namespace(rest: list[str], group: str) -> bool:
    """Whether `namespaces/N/x` is a part of the namespace rather than a resource in it."""
    return group == "" and len(rest) == 3 and rest[2] in ("status", "finalize")


def _scoped(kind: Kind, namespace: str, length: int) -> bool:
    """Namespaced objects are at home in a namespace; all of them together are not."""
    if namespace:
        return kind.namespaced
    return not kind.namespaced or length == 1
