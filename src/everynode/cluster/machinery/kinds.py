"""Which kinds a server has, in the version it prefers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

import msgspec

from everynode.cluster.machinery.writes import ask
from everynode.kube.errors import KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport

# What somebody must be able to do with a kind before anybody looks after it.
NEEDED: Final = ("list", "watch", "delete")


class _Version(msgspec.Struct, rename="camel"):
    group_version: str
    version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    preferred_version: _Version
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _Entry(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _Entries(msgspec.Struct):
    resources: list[_Entry] = []


_decode_groups: Final[Callable[[bytes], _Groups]] = msgspec.json.Decoder(_Groups).decode
_decode_entries: Final[Callable[[bytes], _Entries]] = msgspec.json.Decoder(_Entries).decode


class Kinds:
    """Every kind that can be listed, watched and deleted, found by what owner references say."""

    def __init__(self, found: list[Resource]) -> None:
        self.all = found
        self._by_kind = {(each.group, each.kind): each for each in found}

    def of(self, api_version: str, kind: str) -> Resource | None:
        """The resource that an owner reference means, whatever version it names."""
        group, slash, _ = api_version.partition("/")
        return self._by_kind.get((group if slash else "", kind))


async def discover(transport: Transport) -> Kinds:
    """Ask a server for its kinds; raises KubeError when it does not say."""
    groups = _decode_groups(await _read(transport, "/apis")).groups
    places = [("", "v1"), *((group.name, version) for group in groups for version in _order(group))]
    listed = await asyncio.gather(*(_entries(transport, *place) for place in places))
    # A kind may be missing from the preferred version, so the first one that has it counts.
    found: dict[tuple[str, str], Resource] = {}
    for resource in itertools.chain.from_iterable(listed):
        found.setdefault((resource.group, resource.plural), resource)
    return Kinds(list(found.values()))


def _order(group: _Group) -> list[str]:
    """The versions of a group, the preferred one first."""
    versions = [group.preferred_version, *group.versions]
    return list(dict.fromkeys(each.version for each in versions))


async def _entries(transport: Transport, group: str, version: str) -> list[Resource]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        entries = _decode_entries(await _read(transport, path))
    except NotFound:
        return []  # gone since the groups were listed
    return [
        Resource(group, version, entry.name, entry.kind, namespaced=entry.namespaced)
        for entry in entries.resources
        if "/" not in entry.name and all(verb in entry.verbs for verb in NEEDED)
    ]


async def _read(transport: Transport, path: str) -> bytes:
    answer = await ask(transport, Request("GET", path))
    if isinstance(answer, KubeError):
        raise answer
    return answer.body
