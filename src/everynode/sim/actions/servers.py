"""API server actions: break watches, compact history, upgrade the server, remove the CRD."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from everynode.api.crd import CRD_NAME as CRD
from everynode.api.crd import crd
from everynode.api.defaults import default_template
from everynode.apiserver.storage.store import Record
from everynode.kube import verbs
from everynode.kube.errors import KubeError
from everynode.kube.resources import CRDS
from everynode.sim.actions.context import Act, ActionContext
from everynode.sim.actions.processes import set_release
from everynode.sim.faults.next_release import NEXT, THIS, with_next_default
from everynode.sim.plans.plan import Action, Object

_NATIVE: Final = "daemonsets.apps"
_ADVANCED: Final = "daemonsets.apps.kruise.io"
_ATTEMPTS: Final = 60  # one a second, until the server accepts a write
_Templates = dict[str, tuple[Object, Object]]  # before and after the upgrade, by DaemonSet


# --- Watches --------------------------------------------------------------------------------------


async def _cut_watch(ctx: ActionContext, action: Action) -> None:
    for transport in ctx.world.transports():
        transport.end_watches(action.args.get("kind", ""), half=bool(action.args.get("half")))


async def _gone(ctx: ActionContext, action: Action) -> None:
    """Compact the history: every watch gets 410 Gone and has to list again."""
    store = ctx.world.api.store
    store.history.compact(store.version)
    for transport in ctx.world.transports():
        transport.end_watches(action.args.get("kind", ""), gone=True)


# --- Upgrades -------------------------------------------------------------------------------------


async def _upgrade(ctx: ActionContext, action: Action) -> None:
    """Upgrade server and controllers: templates are stored with every default spelled out."""
    templates = _store_defaults(ctx)
    await set_release(ctx, NEXT)
    ctx.world.loop.create_task(_downgrade(ctx, action.seconds, templates))


async def _downgrade(ctx: ActionContext, seconds: float, templates: _Templates) -> None:
    await ctx.world.clock.sleep(seconds)
    for name, (old, new) in templates.items():
        _store_template(ctx, _ADVANCED, name, new, old)
    await set_release(ctx, THIS)


async def _grow_templates(ctx: ActionContext, action: Action) -> None:
    """A newer server serves a default that only the next release of Everynode knows."""
    for kind in (_NATIVE, _ADVANCED):
        for record in _stored_records(ctx, kind):
            old: Object = msgspec.json.decode(record.body)["spec"]["template"]
            new = msgspec.json.decode(with_next_default(msgspec.json.encode(old)))
            _store_template(ctx, kind, record.name, old, new)


def _store_defaults(ctx: ActionContext) -> _Templates:
    """Store every template with its defaults, as a server does whose table has grown."""
    found = {}
    for record in _stored_records(ctx, _ADVANCED):
        old: Object = msgspec.json.decode(record.body)["spec"]["template"]
        new = msgspec.to_builtins(default_template(msgspec.to_builtins(old)))
        _store_template(ctx, _ADVANCED, record.name, old, new)
        found[record.name] = (old, new)
    return found


def _stored_records(ctx: ActionContext, kind: str) -> list[Record]:
    return list(ctx.world.api.store.collection(kind).scan())


def _store_template(
    ctx: ActionContext, kind: str, name: str, before: Object, after: Object
) -> None:
    """Replace the stored template without a new generation: no user has changed the spec."""
    store = ctx.world.api.store
    collection = store.collection(kind)
    record = collection.get("default", name)
    obj: Any = msgspec.json.decode(record.body) if record is not None else None
    if obj is not None and before != after and obj["spec"]["template"] == before:
        obj["spec"]["template"] = after
        store.put(collection, obj)


# --- The CRD --------------------------------------------------------------------------------------


async def _remove_crd(ctx: ActionContext, action: Action) -> None:
    """Remove the CRD with all its objects, then install both again."""
    kept = [msgspec.json.decode(each.body) for each in _stored_records(ctx, _ADVANCED)]
    await ctx.client.write(verbs.delete(CRDS, CRD), bytes)
    await ctx.world.clock.sleep(action.seconds)
    await _until_accepted(ctx, lambda: ctx.client.write(verbs.create(CRDS, crd()), bytes))
    for each in kept:
        named = {key: each["metadata"][key] for key in ("name", "namespace")}
        fresh = {**each, "metadata": named, "status": {}}
        await _until_accepted(ctx, partial(ctx.create_daemonset, fresh))


async def _until_accepted(ctx: ActionContext, write: Callable[[], Awaitable[object]]) -> None:
    """Repeat a write until the server accepts it: the old object may still be terminating."""
    for _ in range(_ATTEMPTS):
        try:
            await write()
            return
        except KubeError:
            await ctx.world.clock.sleep(1.0)


ACTIONS: Final[dict[str, Act]] = {
    "cut-watch": _cut_watch,
    "gone": _gone,
    "upgrade": _upgrade,
    "grow-templates": _grow_templates,
    "remove-crd": _remove_crd,
}
