"""Discovery: which resources a server has, in the version it prefers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from everynode.components.request_queue import send_request
from everynode.kube.client import UNREADABLE
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport

# The garbage collector and the namespace controller skip resources without one of these verbs.
REQUIRED_VERBS: Final = ("list", "watch", "delete")
_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_KIND}"


class _ResponseKind(msgspec.Struct, rename="camel"):
    kind: str = ""


class _ResourceEntry(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _ResponseKind = msgspec.field(default_factory=_ResponseKind)
    scope: str = ""
    verbs: tuple[str, ...] = ()


class _Version(msgspec.Struct):
    version: str
    resources: list[_ResourceEntry] = []


class _GroupMeta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _GroupMeta = msgspec.field(default_factory=_GroupMeta)
    versions: list[_Version] = []


class _GroupList(msgspec.Struct):
    kind: str = ""
    items: list[_Group] = []


_decode: Final[Callable[[bytes], _GroupList]] = msgspec.json.Decoder(_GroupList).decode


class ServerResources:
    """Every resource that can be listed, watched and deleted."""

    def __init__(self, found: list[Resource]) -> None:
        self.all = found
        self._by_kind = {(each.group, each.kind): each for each in found}

    def for_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of an owner reference's kind, in any version of its group."""
        group, slash, _ = api_version.partition("/")
        return self._by_kind.get((group if slash else "", kind))


async def discover(transport: Transport) -> ServerResources:
    """Ask a server for its resources; raises KubeError."""
    # Versions come in the order of preference. A kind may be missing from the preferred version,
    # so the first version that has it counts.
    found: dict[tuple[str, str], Resource] = {}
    for path in ("/api", "/apis"):
        for group in await _groups(transport, path):
            for version in group.versions:
                for entry in version.resources:
                    if all(verb in entry.verbs for verb in REQUIRED_VERBS):
                        resource = _resource(group.metadata.name, version.version, entry)
                        found.setdefault((resource.group, resource.plural), resource)
    return ServerResources(list(found.values()))


def _resource(group: str, version: str, entry: _ResourceEntry) -> Resource:
    kind, namespaced = entry.response_kind.kind, entry.scope == "Namespaced"
    return Resource(group, version, entry.resource, kind, namespaced=namespaced)


async def _groups(transport: Transport, path: str) -> list[_Group]:
    """The groups with their versions and resources (aggregated discovery, Kubernetes 1.30)."""
    result = await send_request(transport, Request("GET", path, accept=_AGGREGATED))
    if isinstance(result, KubeError):
        raise result
    try:
        groups = _decode(result.body)
    except UNREADABLE as error:
        raise KubeError(f"GET {path}: the response cannot be decoded: {error}") from None
    if groups.kind != _KIND:
        raise KubeError(f"GET {path}: Kubernetes 1.30 or newer is needed to list all kinds at once")
    return groups.items
