"""Versions of objects: those that are stored now, and those that watches have shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from everynode.kube.client import Client
from everynode.kube.resources import Resource
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache, parse_resource_version

Versions = dict[str, int]  # resource versions by uid

_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def stored_versions(
    client: Client, resources: Mapping[Resource, ListOptions | None]
) -> Versions:
    """Return the versions of all objects of these resources, read from the server now."""
    versions = {}
    for resource, options in resources.items():
        for each in await client.read_all(resource, _decode, options=options or ListOptions()):
            meta = each["metadata"]
            versions[meta["uid"]] = parse_resource_version(meta["resourceVersion"])
    return versions


def cached_versions(caches: Iterable[Cache[Any]]) -> Versions:
    """Return the versions of the objects in these caches."""
    return {
        cached.metadata.uid: parse_resource_version(cached.metadata.resource_version)
        for cache in caches
        for cached in cache.all().values()
    }


def shows(caches: Iterable[Cache[Any]], stored: Versions) -> bool:
    """Whether the caches have these objects, at these versions or newer ones."""
    known = cached_versions(caches)
    return all(known.get(uid, 0) >= version for uid, version in stored.items())
