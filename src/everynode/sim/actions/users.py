"""User actions: change DaemonSets and their strategy, and write to pods, revisions and status."""

from __future__ import annotations

from typing import Final

from everynode.kube import verbs
from everynode.kube.errors import KubeError
from everynode.kube.resources import ADVANCED_V1ALPHA1, PODS, REVISIONS
from everynode.sim.actions.context import Act, ActionContext, set_name
from everynode.sim.history.record import NAMESPACE
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Object

_CREATE_ATTEMPTS: Final = 30  # one a second, until the old DaemonSet is gone


# --- The spec of a DaemonSet ----------------------------------------------------------------------


async def _apply(ctx: ActionContext, action: Action) -> None:
    """Merge fields into the spec of a DaemonSet: partition, paused, and the like."""
    await ctx.patch_daemonset(set_name(action), {"spec": action.args["spec"]})


async def _set_image(ctx: ActionContext, action: Action) -> None:
    def change(template: Object) -> None:
        template["spec"]["containers"][0]["image"] = action.args["image"]
        annotations = action.args.get("annotations")
        if annotations is not None:
            template.setdefault("metadata", {})["annotations"] = annotations

    await ctx.change_template(set_name(action), change)


async def _set_selector(ctx: ActionContext, action: Action) -> None:
    """Change the template's nodeSelector."""

    def change(template: Object) -> None:
        template["spec"]["nodeSelector"] = action.args["labels"] or None

    await ctx.change_template(set_name(action), change)


async def _set_tolerations(ctx: ActionContext, action: Action) -> None:
    """Change the template's tolerations."""

    def change(template: Object) -> None:
        template["spec"]["tolerations"] = action.args["tolerations"] or None

    await ctx.change_template(set_name(action), change)


async def _respell(ctx: ActionContext, action: Action) -> None:
    """Write default values into the template explicitly; its meaning stays the same."""
    defaults = {"dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    await ctx.patch_daemonset(set_name(action), {"spec": {"template": {"spec": defaults}}})


async def _set_variable(ctx: ActionContext, action: Action) -> None:
    """Change an environment variable, which cannot be updated in place."""

    def change(template: Object) -> None:
        variable = {"name": "LEVEL", "value": str(action.args["value"])}
        template["spec"]["containers"][0]["env"] = [variable]

    await ctx.change_template(set_name(action), change)


async def _set_requests(ctx: ActionContext, action: Action) -> None:
    """Change how much cpu the template requests."""

    def change(template: Object) -> None:
        container = template["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": action.args["cpu"]}}

    await ctx.change_template(set_name(action), change)


async def _recreate_set(ctx: ActionContext, action: Action) -> None:
    """Delete a DaemonSet, perhaps without its pods, and create it again."""
    name = set_name(action)
    live = await ctx.get(ctx.resource(name), name)
    propagation = action.args.get("propagation", "Background")
    await ctx.delete(ctx.resource(name), name, propagation=propagation)
    await ctx.world.clock.sleep(action.seconds)
    meta = {"name": name, "labels": live["metadata"].get("labels", {})}
    fresh = {**live, "metadata": meta}
    fresh.pop("status", None)
    for _ in range(_CREATE_ATTEMPTS):
        try:
            await ctx.create_daemonset(fresh)
            return
        except KubeError:  # the old one is not gone yet
            await ctx.world.clock.sleep(1.0)


async def _overlap(ctx: ActionContext, action: Action) -> None:
    """Create a second DaemonSet whose selector matches the first one's pods."""
    twin = daemonset("twin", image="agent:v1")
    twin["spec"]["selector"] = {"matchLabels": {"app": "agent"}}
    twin["spec"]["template"]["metadata"]["labels"] = {"app": "agent", "twin": "yes"}
    await ctx.create_daemonset(twin)


async def _touch_as_alpha(ctx: ActionContext, action: Action) -> None:
    """Write the DaemonSet in its older API version."""
    body = {"metadata": {"annotations": {"touched": str(action.at)}}}
    await ctx.patch(ADVANCED_V1ALPHA1, set_name(action), body)


async def _write_status(ctx: ActionContext, action: Action) -> None:
    """Write the status, as a second controller does that manages the same DaemonSet."""
    name = set_name(action)
    fields = action.args.get("status", {"numberReady": action.args.get("number", 0)})
    body: Object = {"status": {**fields}}
    if action.args.get("condition"):
        live = await ctx.get(ctx.resource(name), name)
        other = {"type": action.args["condition"], "status": "True"}
        body["status"]["conditions"] = [*live.get("status", {}).get("conditions", ()), other]
    request = verbs.patch(ctx.resource(name), name, body, namespace=NAMESPACE, subresource="status")
    await ctx.client.write(request, bytes)


# --- Pods and revisions ---------------------------------------------------------------------------


async def _delete_pod(ctx: ActionContext, action: Action) -> None:
    pod = ctx.pick_pod(action)
    if pod is not None:
        await ctx.delete(PODS, pod.name, grace_seconds=action.args.get("grace"))


async def _relabel_pod(ctx: ActionContext, action: Action) -> None:
    """Relabel a pod so that the selector no longer matches; delete it later unless kept."""
    pod = ctx.pick_pod(action)
    if pod is None:
        return
    await ctx.patch(PODS, pod.name, {"metadata": {"labels": {"app": "taken-out"}}})
    if not action.args.get("keep"):
        await ctx.world.clock.sleep(action.seconds)
        await ctx.delete(PODS, pod.name)


async def _orphan_pod(ctx: ActionContext, action: Action) -> None:
    """Remove a pod's owner reference, and with `strip` its revision hash."""
    pod = ctx.pick_pod(action)
    if pod is not None:
        body: Object = {"metadata": {"ownerReferences": None}}
        if action.args.get("strip"):
            body["metadata"]["labels"] = {"controller-revision-hash": None}
        await ctx.patch(PODS, pod.name, body)


async def _strip_hash(ctx: ActionContext, action: Action) -> None:
    """Remove the label by which the controller watches its pods."""
    pod = ctx.pick_pod(action)
    if pod is not None:
        body = {"metadata": {"labels": {"controller-revision-hash": None}}}
        await ctx.patch(PODS, pod.name, body)


async def _delete_revision(ctx: ActionContext, action: Action) -> None:
    name = _pick_revision(ctx, action)
    if name:
        await ctx.delete(REVISIONS, name)


async def _edit_revision(ctx: ActionContext, action: Action) -> None:
    name = _pick_revision(ctx, action)
    if name:
        await ctx.patch(REVISIONS, name, {"revision": action.args.get("number", 99)})


def _pick_revision(ctx: ActionContext, action: Action) -> str:
    names = sorted(ctx.world.record.cluster.revisions)
    return names[action.args.get("index", 0) % len(names)] if names else ""


ACTIONS: Final[dict[str, Act]] = {
    "apply": _apply,
    "set-image": _set_image,
    "set-requests": _set_requests,
    "set-selector": _set_selector,
    "set-tolerations": _set_tolerations,
    "respell": _respell,
    "set-variable": _set_variable,
    "recreate-set": _recreate_set,
    "overlap": _overlap,
    "touch-as-alpha": _touch_as_alpha,
    "write-status": _write_status,
    "delete-pod": _delete_pod,
    "relabel-pod": _relabel_pod,
    "orphan-pod": _orphan_pod,
    "strip-hash": _strip_hash,
    "delete-revision": _delete_revision,
    "edit-revision": _edit_revision,
}
