"""Path resolution: from a URL path to the resource, namespace, name and subresource it names."""

from __future__ import annotations

from typing import Final

from everynode.apiserver.errors import not_found, unknown_resource
from everynode.apiserver.request.api_request import ResourcePath
from everynode.apiserver.resources.registry import Kind, Registry

_MAX_CACHED: Final = 4096  # paths in the cache


def resolve_path(path: str, kinds: Registry) -> ResourcePath | None:
    """Resolve a path; None for paths outside the API and for groups that are not served.

    Raises 404 for a resource that a served group does not have, as kube-apiserver does.
    """
    path = path.removesuffix("/")
    found: ResourcePath | None = kinds.path_cache.get(path)
    if found is None:
        found = _below_known_path(path, kinds) or _resolve(path, kinds)
        if len(kinds.path_cache) >= _MAX_CACHED:
            kinds.path_cache.clear()
        kinds.path_cache[path] = found
    return found


def _below_known_path(path: str, kinds: Registry) -> ResourcePath | None:
    """Resolve a path one or two segments below a cached one, or return None.

    This is the fast path for new objects: `.../namespaces/default/pods` is cached, so
    `.../pods/web-1` and `.../pods/web-1/status` need no lookup in the registry.
    """
    above, _, last = path.rpartition("/")
    place = kinds.path_cache.get(above)
    if place is None:
        further, _, name = above.rpartition("/")
        place = _child_path(kinds.path_cache.get(further), name)
    return _child_path(place, last)


def _child_path(place: ResourcePath | None, segment: str) -> ResourcePath | None:
    """Extend a resolved path by one segment (a name or a subresource), or return None."""
    if place is None or place.subresource or not segment:
        return None
    kind, namespace = place.kind, place.namespace
    if not place.name:
        return (
            ResourcePath(kind, namespace, segment) if kind.namespaced == bool(namespace) else None
        )
    return ResourcePath(kind, namespace, place.name, segment) if kind.subresource(segment) else None


def _resolve(path: str, kinds: Registry) -> ResourcePath | None:
    match path.split("/")[1:]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest and group:
            pass
        case _:
            return None
    if not kinds.serves(group, version):
        return None
    place = _resource_path(rest, group, version, kinds)
    if place is None:
        raise unknown_resource()
    return place


def _resource_path(
    rest: list[str], group: str, version: str, kinds: Registry
) -> ResourcePath | None:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_subresource(rest, group):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return None
    kind = kinds.find(group, version, rest[0])
    if kind is None or not _scope_matches(kind, namespace, len(rest)):
        return None
    if len(rest) == 3 and kind.subresource(rest[2]) is None:
        if kind.custom:
            raise not_found(kind, rest[1])
        return None
    name, part = [*rest[1:], "", ""][:2]
    return ResourcePath(kind, namespace, name, part)


def _is_namespace_subresource(rest: list[str], group: str) -> bool:
    """Whether `namespaces/N/x` is a subresource of the namespace, not a resource in it."""
    return group == "" and len(rest) == 3 and rest[2] in ("status", "finalize")


def _scope_matches(kind: Kind, namespace: str, length: int) -> bool:
    """Whether the path has a namespace exactly if it needs one.

    A namespaced collection may be listed across all namespaces (`length` 1, no namespace).
    """
    if namespace:
        return kind.namespaced
    return not kind.namespaced or length == 1
