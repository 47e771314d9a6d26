"""Which kinds a server has, in the version it prefers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from everynode.cluster.machinery.writes import ask
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport

# What somebody must be able to do with a kind before anybody looks after it.
NEEDED: Final = ("list", "watch", "delete")
_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_KIND}"


class _Answer(msgspec.Struct, rename="camel"):
    kind: str = ""


class _Entry(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Answer = msgspec.field(default_factory=_Answer)
    scope: str = ""
    verbs: tuple[str, ...] = ()


class _Version(msgspec.Struct):
    version: str
    resources: list[_Entry] = []


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    kind: str = ""
    items: list[_Group] = []


_decode: Final[Callable[[bytes], _Groups]] = msgspec.json.Decoder(_Groups).decode


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
    # Versions come in the order of preference; a kind may be missing from the preferred one, so
    # the first that has it counts.
    found: dict[tuple[str, str], Resource] = {}
    for path in ("/api", "/apis"):
        for group in await _groups(transport, path):
            for version in group.versions:
                for entry in version.resources:
                    if all(verb in entry.verbs for verb in NEEDED):
                        resource = _resource(group.metadata.name, version.version, entry)
                        found.setdefault((resource.group, resource.plural), resource)
    return Kinds(list(found.values()))


def _resource(group: str, version: str, entry: _Entry) -> Resource:
    kind, namespaced = entry.response_kind.kind, entry.scope == "Namespaced"
    return Resource(group, version, entry.resource, kind, namespaced=namespaced)


async def _groups(transport: Transport, path: str) -> list[_Group]:
    """The groups with all their versions and kinds, as Kubernetes 1.30 and newer list them."""
    answer = await ask(transport, Request("GET", path, accept=_AGGREGATED))
    if isinstance(answer, KubeError):
        raise answer
    groups = _decode(answer.body)
    if groups.kind != _KIND:
        raise KubeError(f"GET {path}: Kubernetes 1.30 or newer is needed to list all kinds at once")
    return groups.items
