"""How often a DaemonSet is reconciled: once for changes that come together, never without one."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from everynode.controller.informers import Reconcile
from everynode.controller.reconcile import Reconciler
from everynode.controller.run import Controller, ControllerOptions
from everynode.controller.scheduling import Urgency
from everynode.controller.state import DaemonSetState
from everynode.kube.requests import Request, Response
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.world import play
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

NODES, BATCH = 60, 10
START, STOP = 20.0, 10.0
UPDATED_AT = 60.0


class NoServer(WithoutWatches):
    async def send(self, request: Request) -> Response:
        raise AssertionError("nothing is requested here")


def reconcile_times(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> list[float]:
    """When the workload was looked at while the plan was played."""
    times: list[float] = []
    reconcile = Reconciler._reconcile

    def noted(self: Reconciler, *args: Any) -> None:
        times.append(asyncio.get_running_loop().time())
        reconcile(self, *args)

    monkeypatch.setattr(Reconciler, "_reconcile", noted)
    result, _ = play(plan)
    assert result.kept, result.violations
    return times


def rollout() -> Plan:
    update = Action("set-image", at=UPDATED_AT, args={"image": "agent:v2"})
    return Plan(
        1,
        nodes=NODES,
        manifests=(daemonset(rolling={"maxUnavailable": BATCH}),),
        timing=Timing(pull=0.0, start=START, stop=STOP),
        quiet_at=UPDATED_AT + 1.0,
        patience=1e6,
        actions=(update,),
    )


def test_pods_that_become_ready_or_are_removed_together_are_reconciled_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = reconcile_times(monkeypatch, rollout())
    batches = NODES // BATCH
    updating = [at for at in times if UPDATED_AT < at < UPDATED_AT + batches * (START + STOP)]
    # Ready and gone; then what was written is seen, the gates are opened, the status is written.
    assert len(updating) < 9 * batches


def test_a_batch_does_not_fall_apart_from_one_step_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = reconcile_times(monkeypatch, rollout())
    last = UPDATED_AT + (NODES // BATCH - 1) * (START + STOP)
    per_second = Counter(int(at) for at in times if last < at < last + START)
    assert max(per_second.values()) <= 4


def test_a_deferred_reconcile_runs_even_if_none_has_succeeded_before() -> None:
    controller = Controller(NoServer(), ManualClock(), ControllerOptions())
    reconciler = controller._assemble({})
    state = DaemonSetState(make().ds, {})
    state.changed.start_deferral(0.0)  # long ago, and nothing has been decided since
    reconciler.handle(Reconcile(state, Urgency.DEFERRED))
    assert len(controller._queue) == 1
