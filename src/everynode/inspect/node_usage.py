"""Node usage: what the pods of others request on each node, read page by page and added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from everynode.api.objects import Partial, PodMeta
from everynode.api.resources import PODS as ONE_POD
from everynode.api.resources import RequestingSpec, add_amounts, pod_requests
from everynode.inspect.snapshot import list_all
from everynode.kube.client import Client
from everynode.kube.resources import PODS
from everynode.kube.verbs import ListOptions

Usage = Mapping[str, Mapping[str, int]]  # by node, by resource

# Pods that are bound to a node and have not ended.
_BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class _Spec(RequestingSpec, frozen=True):
    node_name: str = ""
    priority: int = 0


class _Pod(Partial, frozen=True):
    """A pod as far as it takes room."""

    metadata: PodMeta
    spec: _Spec = _Spec()


async def read_usage(client: Client, *, own: str, priority: int) -> Usage | str:
    """Return what the pods of others request on each node, or the permission that is missing.

    `own` is the uid of the DaemonSet whose pods are left out. Pods of a lower priority than the
    given one are left out, too: they would have to give way.
    """
    used: dict[str, dict[str, int]] = {}
    decode = msgspec.json.Decoder(_Pod).decode

    def add(body: bytes) -> None:
        pod = decode(body)
        controller = pod.metadata.controller
        if pod.spec.priority < priority or (controller is not None and controller.uid == own):
            return
        name = pod.spec.node_name
        used[name] = add_amounts((used.get(name, {}), pod_requests(pod.spec), {ONE_POD: 1}))

    found = await list_all(client, PODS, add, ListOptions(fields=_BOUND))
    return found if isinstance(found, str) else used
