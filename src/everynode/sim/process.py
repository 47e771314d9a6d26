"""One controller process of a simulated world: started, killed at any instant, started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from everynode.cluster.rest import Api
from everynode.controller.leader import Election, Leadership, Terms
from everynode.controller.run import Controller, Options
from everynode.sim.clock import SimClock
from everynode.sim.door import Door
from everynode.sim.edition import context
from everynode.sim.loop import SimLoop
from everynode.sim.record import Record
from everynode.sim.weather import Sky

LEASES: Final = "kube-system"
# Renewals are most of what happens at rest; half as many are as good.
TERMS: Final = Terms(retry=4.0)


class Process:
    """A controller with a clock and a way to the server of its own."""

    def __init__(
        self,
        loop: SimLoop,
        api: Api,
        record: Record,
        *,
        name: str,
        seed: object,
        sky: Sky,
        elected: bool,
        edition: str,
        crashed: Callable[[Process, str], None],
    ) -> None:
        self.name = name
        self.dead = False
        self.trouble: BaseException | None = None
        self._crashed = crashed
        self.clock = SimClock(loop, f"{seed}/{name}")
        self.door = Door(api, record, name=name, clock=self.clock, seed=seed, sky=sky, process=self)
        leadership: Leadership | None = None
        if elected:
            leadership = Election(
                self.door, self.clock, identity=self.clock.uid(), namespace=LEASES, terms=TERMS
            )
        options = Options(native=True, forgiving=False)
        self.controller = Controller(self.door, self.clock, options, leadership=leadership)
        self.task = loop.create_task(self._run(), context=context(edition))

    async def _run(self) -> None:
        try:
            await self.controller.run()
        except BaseException as error:
            # Whatever a dead process says at its end does not matter; a live one must not end.
            if not self.dead:
                self.trouble = error
                if isinstance(error, asyncio.CancelledError):
                    raise

    def crash(self, why: str) -> None:
        """Die at once: nothing more is said or done, whatever was under way."""
        if self.dead:
            return
        self.dead = True
        self.door.kill()
        self.clock.kill()
        self.task.cancel()
        self._crashed(self, why)

    async def stop(self) -> None:
        """End as a process ends that is asked to."""
        self.task.cancel()
        await asyncio.wait([self.task])
        self.dead = True
        self.door.kill()
        self.clock.kill()
