"""The question of a plan: which DaemonSet changes how, and the cluster it is in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.versions import flavour_of
from everynode.cli.access.cluster import Cluster
from everynode.cli.access.daemonset_names import (
    RESOURCES,
    FoundDaemonSet,
    find_daemonset,
    no_crd_error,
    read_daemonset,
)
from everynode.cli.planning import room
from everynode.cli.planning.applied import apply_manifest
from everynode.cli.planning.change import Flags, apply_flags
from everynode.cli.terminal.manifest_files import display_name, read_daemonsets
from everynode.errors import UsageError, UserError
from everynode.inspect.node_usage import read_usage
from everynode.inspect.stored_objects import StoredObjects, read_stored_objects
from everynode.kube.errors import Forbidden, NotServed
from everynode.kube.permissions import missing_permission, missing_permissions

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A DaemonSet before and after the change, and the objects of its cluster."""

    live: Object | None  # None: it does not exist yet
    decoded: DaemonSet | None  # the same
    new: Object
    namespace: str
    objects: StoredObjects

    @property
    def short_name(self) -> str:
        """`ads/NAME` or `ds/NAME`, as one would type it."""
        return f"{flavour_of(self.new['apiVersion']).short}/{self.new['metadata']['name']}"


def read_manifest(file: str) -> Object:
    """Return the DaemonSet of a file; raises UserError."""
    found = read_daemonsets([file])
    name = display_name(file)
    if len(found) > 1:
        names = ", ".join(each["metadata"]["name"] for each in found)
        raise UserError(f"{name} holds {len(found)} DaemonSets ({names}): plan one at a time")
    try:
        flavour_of(str(found[0].get("apiVersion")))
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None
    return found[0]


async def ask(cluster: Cluster, name: str, manifest: Object | None, flags: Flags) -> Question:
    """Read the DaemonSet and its cluster; raises UserError, UsageError and KubeError."""
    if manifest is None:
        found: FoundDaemonSet | None = await find_daemonset(cluster, name)
    else:
        cluster = _in_namespace(cluster, manifest)
        found = await _find_by_manifest(cluster, manifest)
    live = None if found is None else msgspec.json.decode(found.raw, type=Object)
    if manifest is None:
        assert live is not None
        new = live
    elif live is None:
        new = {**manifest, "metadata": {**manifest["metadata"], "namespace": cluster.namespace}}
    else:
        new = apply_manifest(live, manifest)
    new = apply_flags(new, flags)
    ds = found.ds if found is not None else None
    raw = found.raw if found is not None else None
    objects = await read_stored_objects(cluster.client, ds, raw, cluster.clock.now())
    if objects.nodes is not None and room.matters(live, new):
        objects = await _with_usage(cluster, objects, live, new)
    return Question(live=live, decoded=ds, new=new, namespace=cluster.namespace, objects=objects)


async def _with_usage(
    cluster: Cluster, objects: StoredObjects, live: Object | None, new: Object
) -> StoredObjects:
    """Add what the pods of others request; only where a new pod may need more room."""
    own = live["metadata"]["uid"] if live is not None else ""
    priority = room.priority_of(live, new, objects.pods)
    used = await read_usage(cluster.client, own=own, priority=priority)
    if isinstance(used, str):
        return msgspec.structs.replace(objects, missing=(*objects.missing, used))
    return msgspec.structs.replace(objects, used=used)


def _in_namespace(cluster: Cluster, manifest: Object) -> Cluster:
    """Return the connection in the namespace of a manifest."""
    written = manifest["metadata"].get("namespace")
    if not written:
        return cluster
    if cluster.options.namespace and cluster.options.namespace != written:
        raise UsageError(
            f"the manifest is for namespace {written}, and -n says {cluster.options.namespace}"
        )
    return replace(cluster, namespace=written)


async def _find_by_manifest(cluster: Cluster, manifest: Object) -> FoundDaemonSet | None:
    """Return the DaemonSet that a manifest describes; None if there is none yet."""
    flavour, name = flavour_of(manifest["apiVersion"]), manifest["metadata"]["name"]
    answer = await read_daemonset(cluster, flavour, name)
    if isinstance(answer, FoundDaemonSet):
        return answer
    if isinstance(answer, NotServed):
        raise no_crd_error()
    if isinstance(answer, Forbidden):
        raise missing_permissions([missing_permission(answer)])
    for other in RESOURCES:
        if other is not flavour:
            twin = await read_daemonset(cluster, other, name)
            if isinstance(twin, FoundDaemonSet):
                raise UserError(
                    f"the manifest is of {flavour.short}/{name}, and namespace "
                    f"{cluster.namespace} has {twin.short_name}: two DaemonSets would run; "
                    f"`everynode migrate {twin.short_name}` changes the kind"
                )
    return None
