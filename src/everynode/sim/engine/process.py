"""Process: one simulated controller process, which can be started, killed and restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from everynode.apiserver.verbs.dispatch import Api
from everynode.controller.leader import Election, Leadership, LeaseTimes
from everynode.controller.run import Controller, ControllerOptions
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.faults.active import ActiveFaults
from everynode.sim.faults.next_release import NEXT, with_next_default
from everynode.sim.faults.transport import FaultyTransport
from everynode.sim.history.record import WorldRecord

LEASE_NAMESPACE: Final = "kube-system"
# When idle, most requests are lease renewals; half as many suffice here.
TERMS: Final = LeaseTimes(retry=4.0)


class Process:
    """A controller with its own clock and transport."""

    def __init__(
        self,
        loop: SimLoop,
        api: Api,
        record: WorldRecord,
        *,
        name: str,
        seed: object,
        faults: ActiveFaults,
        elected: bool,
        release: str,
        crashed: Callable[[Process, str], None],
    ) -> None:
        self.name = name
        self.dead = False
        self.error: BaseException | None = None
        self._crashed = crashed
        self.clock = SimClock(loop, f"{seed}/{name}")
        self.transport = FaultyTransport(
            api, record, name=name, clock=self.clock, seed=seed, faults=faults, process=self
        )
        leadership: Leadership | None = None
        if elected:
            leadership = Election(
                self.transport,
                self.clock,
                identity=self.clock.uid(),
                namespace=LEASE_NAMESPACE,
                terms=TERMS,
            )
        options = ControllerOptions(native=True, forgiving=False)
        if release == NEXT:
            options = replace(options, extra_defaults=with_next_default)
        self.controller = Controller(self.transport, self.clock, options, leadership=leadership)
        self.task = loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.controller.run()
        except (KeyboardInterrupt, SystemExit):
            raise  # of the program that simulates
        except BaseException as error:
            # Errors of a killed process do not matter; a running one must not end.
            if not self.dead:
                self.error = error
                if isinstance(error, asyncio.CancelledError):
                    raise

    @property
    def contested_standing_by(self) -> list[str]:
        """The DaemonSets of which a process that does not lead reports a status conflict (R9)."""
        leads = self.controller.leadership.write_budget_seconds() > 0
        return [] if leads or self.dead else self.controller.metrics.contested

    def crash(self, why: str) -> None:
        """Kill the process at once: requests in flight get no response."""
        if self.dead:
            return
        self.dead = True
        self.transport.kill()
        self.clock.kill()
        self.task.cancel()
        self._crashed(self, why)

    async def stop(self) -> None:
        """Shut the controller down cleanly."""
        self.task.cancel()
        await asyncio.wait([self.task])
        self.dead = True
        self.transport.kill()
        self.clock.kill()
