"""kubectl: finds the pod of a node and replaces this process by kubectl on that pod."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from shutil import which
from typing import Final, NoReturn

from everynode.api.objects import Pod
from everynode.api.times import seconds
from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.daemonset_names import find_daemonset
from everynode.cli.access.options import ClusterOptions
from everynode.controller.requests import selected_by
from everynode.errors import UserError
from everynode.inspect.snapshot import owned_by
from everynode.kube.resources import PODS
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.decode import Decoder

_decode: Final = Decoder(Pod).one


def run_on_pod(access: ClusterOptions, name: str, node: str, before: Sequence[str]) -> NoReturn:
    """Run kubectl with these arguments; `{pod}` among them becomes the name of the pod."""
    namespace, pod = asyncio.run(_find(access, name, node))
    arguments = [pod if each == "{pod}" else each for each in before]
    command = ["kubectl", *access.kubectl_arguments(namespace), *arguments]
    program = which("kubectl")
    if program is None:
        raise UserError(
            "kubectl is not on PATH; install it, or run where it is: " + shlex.join(command)
        )
    sys.stdout.flush()
    os.execv(program, command)


async def _find(access: ClusterOptions, name: str, node: str) -> tuple[str, str]:
    async with open_cluster(access) as cluster:
        return await find_pod(cluster, name, node)


async def find_pod(cluster: Cluster, name: str, node: str) -> tuple[str, str]:
    """Return namespace and name of the pod that a DaemonSet has on a node; raises UserError."""
    found = await find_daemonset(cluster, name)
    options = selected_by(found.ds)
    pods: tuple[Pod, ...] = ()
    if options is not None:
        here = ListOptions(options.namespace, options.labels, f"spec.nodeName={node}")
        listed = await cluster.client.read_all(PODS, _decode, options=here)
        pods = owned_by(found.ds, listed)
    if not pods:
        raise UserError(
            f"{found.short_name} has no pod on node {node}; "
            f"`everynode why {node} {found.short_name}{cluster.where(found.ds.namespace)}` says why"
        )
    return found.ds.namespace, min(pods, key=_preference).name


def _preference(pod: Pod) -> tuple[bool, bool, float]:
    """Order of the pods of a node: one that stays first, then the newest."""
    created = seconds(pod.metadata.creation_timestamp) or 0.0
    return pod.terminating, pod.finished, -created
