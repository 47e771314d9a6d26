"""Actions of users who claim another's DaemonSet: from another namespace, or by forgery."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import ControllerRevision
from everynode.kube import verbs
from everynode.kube.resources import NAMESPACES, PODS, REVISIONS, Resource
from everynode.sim.actions.context import Act, ActionContext
from everynode.sim.plans.plan import Action, Object

ELSEWHERE: Final = "elsewhere"
IMAGE: Final = "intruder:v1"
# A finalizer, so that the garbage collector cannot remove the object.
_FINALIZERS: Final = ["sim.everynode.io/kept"]
_HIGH_NUMBER: Final = 1000  # a revision number above those of any world


async def _claim_from_elsewhere(ctx: ActionContext, action: Action) -> None:
    """Create objects in another namespace whose owner reference names a DaemonSet.

    A revision claims to be the target and holds another image, a pod claims a node, and a pull pod
    claims to pull images there.
    """
    ds = ctx.find_daemonset(action)
    if ds is None:
        return
    meta = {"name": ELSEWHERE}
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    await ctx.client.write(verbs.create(NAMESPACES, body), bytes)
    target = _newest_revision(ctx)
    if target is None:
        return
    await _create(ctx, REVISIONS, _forge_revision(ds, target, name=f"{target.metadata.name}-x"))
    node, hash = str(action.args["node"]), target.metadata.labels[keys.REVISION_HASH]
    await _create(ctx, PODS, _pod(ds, node, {keys.REVISION_HASH: hash}))
    await _create(ctx, PODS, _pod(ds, node, {keys.PULL_POD_OWNER: ds.uid}, controls=False))


async def _forge_target(ctx: ActionContext, action: Action) -> None:
    """Replace the target's ControllerRevision by one that holds another image."""
    ds = ctx.find_daemonset(action)
    target = _newest_revision(ctx)
    if ds is None or target is None:
        return
    name, namespace = target.metadata.name, ds.namespace
    forged = _forge_revision(ds, target, name=name)
    await ctx.client.write(verbs.delete(REVISIONS, name, namespace=namespace), bytes)
    await ctx.client.write(verbs.create(REVISIONS, forged, namespace=namespace), bytes)


def _newest_revision(ctx: ActionContext) -> ControllerRevision | None:
    """The revision with the highest number."""
    found = ctx.world.record.cluster.revisions.values()
    return max(found, key=lambda each: each.revision, default=None)


async def _create(ctx: ActionContext, resource: Resource, body: Object) -> None:
    await ctx.client.write(verbs.create(resource, body, namespace=ELSEWHERE), bytes)


def _forge_revision(ds: DaemonSet, target: ControllerRevision, *, name: str) -> Object:
    data: Object = msgspec.json.decode(bytes(target.data))
    data["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGE
    meta = target.metadata
    return {
        "apiVersion": keys.APPS_V1,
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "labels": meta.labels,
            "annotations": meta.annotations,
            "finalizers": _FINALIZERS if name != meta.name else [],
            "ownerReferences": [_reference(ds)],
        },
        "data": data,
        "revision": _HIGH_NUMBER if name != meta.name else target.revision,
    }


def _pod(ds: DaemonSet, node: str, labels: dict[str, str], *, controls: bool = True) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "intruder-",
            "labels": {**ds.selector.match_labels, **labels},
            "finalizers": _FINALIZERS,
            "ownerReferences": [_reference(ds, controls=controls)],
        },
        "spec": {"nodeName": node, "containers": [{"name": "agent", "image": IMAGE}]},
    }


def _reference(ds: DaemonSet, *, controls: bool = True) -> dict[str, Any]:
    native = ds.flavour is Flavour.NATIVE
    return {
        "apiVersion": keys.APPS_V1 if native else keys.V1BETA1,
        "kind": keys.KIND,
        "name": ds.name,
        "uid": ds.uid,
        "controller": controls,
    }


ACTIONS: Final[dict[str, Act]] = {
    "claim-from-elsewhere": _claim_from_elsewhere,
    "forge-target": _forge_target,
}
