"""Names of objects in a cluster, for completion: metadata only, one page, within two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from everynode.cli.access.connection import find_access
from everynode.clock import SystemClock
from everynode.errors import UserError
from everynode.kube import resources, verbs
from everynode.kube.auth.credentials import ConfigError
from everynode.kube.auth.kubeconfig import context_names
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.http.transport import HttpTransport
from everynode.kube.requests import METADATA_LIST

_TIMEOUT: Final = 2.0
_MAX_OFFERED: Final = 500  # names that are offered; more cannot be read anyway
_KINDS: Final = {
    "nodes": resources.NODES,
    "namespaces": resources.NAMESPACES,
    "ads": resources.ADVANCED,
    "ds": resources.DAEMONSETS,
}


class _Meta(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    items: list[_Item] = []


_decode: Final = msgspec.json.Decoder(_List).decode


def list_names(given: Mapping[str, Any], *kinds: str) -> list[list[str]]:
    """Return the names of all objects of each of the kinds `nodes`, `namespaces`, `ads`, `ds`.

    `given` holds the options of the command line so far. What fails gives no names.
    """

    async def look_up() -> list[list[str]]:
        async with asyncio.timeout(_TIMEOUT):
            return await asyncio.gather(*(_names(given, kind) for kind in kinds))

    try:
        return asyncio.run(look_up())
    except (UserError, TimeoutError):
        return [[] for _ in kinds]  # the shell shows the line as it is


def list_contexts(given: Mapping[str, Any]) -> list[str]:
    """Return the contexts of the kubeconfig; none if it cannot be read."""
    try:
        return context_names(given.get("kubeconfig") or "")
    except ConfigError:
        return []


async def _names(given: Mapping[str, Any], kind: str) -> list[str]:
    clock = SystemClock()
    kubeconfig, context = given.get("kubeconfig") or "", given.get("context") or ""
    access = find_access(clock, kubeconfig=kubeconfig, context=context)
    resource = _KINDS[kind]
    namespace = given.get("namespace") or access.namespace
    options = verbs.ListOptions(namespace=namespace if resource.namespaced else "")
    request = verbs.list_page(resource, options=options, limit=_MAX_OFFERED)
    client = Client(HttpTransport(access, clock), clock)
    try:
        asked = msgspec.structs.replace(request, accept=METADATA_LIST, timeout=_TIMEOUT)
        found = await client.read(asked, _decode, attempts=1)
    except KubeError:
        return []
    finally:
        await client.close()
    return [item.metadata.name for item in found.items]
