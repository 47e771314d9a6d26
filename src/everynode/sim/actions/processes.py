"""Process actions: controllers crash, restart, freeze, get wrong clocks and change release."""

from __future__ import annotations

from typing import Final

from everynode.sim.actions.context import Act, ActionContext
from everynode.sim.faults.next_release import NEXT, THIS
from everynode.sim.plans.plan import Action


async def _crash(ctx: ActionContext, action: Action) -> None:
    ctx.process(action).crash(action.describe())


async def _restart(ctx: ActionContext, action: Action) -> None:
    await restart(ctx, int(action.args.get("index", 0)))


async def restart(ctx: ActionContext, index: int) -> None:
    """Stop a controller cleanly and start it again."""
    process = ctx.world.processes.get(index)
    if process is not None and not process.dead:
        await process.stop()
        ctx.world.start(index)


async def _freeze(ctx: ActionContext, action: Action) -> None:
    """A process does nothing for a while and then carries on, as after a long GC pause."""
    process = ctx.world.processes.get(int(action.args.get("index", 0)))
    if process is not None and not process.dead:
        process.clock.freeze(action.seconds)


async def _clock_jump(ctx: ActionContext, action: Action) -> None:
    ctx.process(action).clock.jump(float(action.args["by"]))


async def _clock_drift(ctx: ActionContext, action: Action) -> None:
    """The wall clock of a process runs at another speed."""
    process = ctx.world.processes.get(int(action.args.get("index", 0)))
    if process is not None:
        process.clock.drift(float(action.args["rate"]))


async def _lagging_replica(ctx: ActionContext, action: Action) -> None:
    """A controller restarts and connects to an API server whose watches are behind."""
    ctx.world.faults.begin(action)
    await restart(ctx, int(action.args.get("index", 0)))


async def _release(ctx: ActionContext, action: Action) -> None:
    """Controllers, or one of them, are replaced by the next release, and later rolled back."""
    index = action.args.get("index")
    await set_release(ctx, NEXT, index)
    if action.seconds:
        ctx.world.loop.create_task(_roll_back(ctx, action.seconds, index))


async def _roll_back(ctx: ActionContext, seconds: float, index: int | None) -> None:
    await ctx.world.clock.sleep(seconds)
    await set_release(ctx, THIS, index)


async def set_release(ctx: ActionContext, release: str, index: int | None = None) -> None:
    """Restart one controller, or all of them, as another release."""
    for each in sorted(ctx.world.processes) if index is None else [index]:
        ctx.world.releases[each] = release
        await restart(ctx, each)


ACTIONS: Final[dict[str, Act]] = {
    "crash": _crash,
    "restart": _restart,
    "freeze": _freeze,
    "clock-jump": _clock_jump,
    "clock-drift": _clock_drift,
    "lagging-replica": _lagging_replica,
    "release": _release,
}
