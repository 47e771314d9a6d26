"""Shell completion from the cluster: names of DaemonSets, nodes and namespaces.

A completion prints nothing and gives up after two seconds: the user is in the middle of a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import click
import msgspec
from click.shell_completion import CompletionItem

from everynode.errors import UserError

_SECONDS: Final = 2.0
_MOST: Final = 500  # names that are offered; more cannot be read anyway

Lookup = Callable[["_Listing"], Awaitable[list[str]]]


class _Meta(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    items: list[_Item] = []


_decode: Final = msgspec.json.Decoder(_List).decode


class _Listing:
    """The names that a cluster has, read as metadata only."""

    def __init__(self, context: click.Context) -> None:
        self._given = context.params

    async def names(self, kind: str) -> list[str]:
        """Return the names of all objects of `nodes`, `namespaces`, `ads` or `ds`."""
        from everynode.cli.access.connection import find_access
        from everynode.clock import SystemClock
        from everynode.kube import resources, verbs
        from everynode.kube.client import Client
        from everynode.kube.errors import KubeError
        from everynode.kube.http.transport import HttpTransport
        from everynode.kube.requests import METADATA_LIST

        kinds = {
            "nodes": resources.NODES,
            "namespaces": resources.NAMESPACES,
            "ads": resources.ADVANCED,
            "ds": resources.DAEMONSETS,
        }
        clock = SystemClock()
        access = find_access(
            clock,
            kubeconfig=self._given.get("kubeconfig") or "",
            context=self._given.get("context") or "",
        )
        resource = kinds[kind]
        namespace = self._given.get("namespace") or access.namespace
        scope = verbs.Scope(namespace=namespace if resource.namespaced else "")
        request = verbs.list_page(resource, scope=scope, limit=_MOST)
        client = Client(HttpTransport(access, clock), clock)
        try:
            asked = msgspec.structs.replace(request, accept=METADATA_LIST, timeout=_SECONDS)
            found = await client.read(asked, _decode, attempts=1)
        except KubeError:
            return []
        finally:
            await client.close()
        return [item.metadata.name for item in found.items]


def _completed(context: click.Context, incomplete: str, lookup: Lookup) -> list[CompletionItem]:
    async def look_up() -> list[str]:
        async with asyncio.timeout(_SECONDS):
            return await lookup(_Listing(context))

    try:
        names = asyncio.run(look_up())
    except (UserError, TimeoutError):
        return []  # the shell shows the line as it is
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]


def complete_daemonset(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the DaemonSets of the namespace; a name that both kinds have with its prefix."""
    return _completed(context, incomplete, lambda listing: _daemonsets(listing, incomplete))


async def _daemonsets(listing: _Listing, incomplete: str) -> list[str]:
    advanced, native = await asyncio.gather(listing.names("ads"), listing.names("ds"))
    prefixed = [*(f"ads/{name}" for name in advanced), *(f"ds/{name}" for name in native)]
    if "/" in incomplete:
        return prefixed
    both = {*advanced} & {*native}
    bare = ({*advanced} | {*native}) - both
    return [*bare, *(name for name in prefixed if name.partition("/")[2] in both)]


def complete_node(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the nodes of the cluster."""
    return _completed(context, incomplete, lambda listing: listing.names("nodes"))


def complete_namespace(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the namespaces of the cluster."""
    return _completed(context, incomplete, lambda listing: listing.names("namespaces"))
