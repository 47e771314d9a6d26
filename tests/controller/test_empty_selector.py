"""A DaemonSet whose selector is empty would claim every pod of its namespace."""

from __future__ import annotations

import pytest

from everynode.api.daemonset import LabelSelector
from everynode.controller.reporter import ControllerReporter
from everynode.controller.run import Controller, ControllerOptions
from everynode.controller.state import DaemonSetState
from tests.controller.test_reconcile import NoServer
from tests.support.fleet import make
from tests.support.scripted_server import ManualClock


def test_a_daemonset_that_selects_every_pod_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    monkeypatch.setattr(
        ControllerReporter, "notice", lambda _, __, notice: reasons.append(notice.reason)
    )
    clock = ManualClock()
    reconciler = Controller(NoServer(), clock, ControllerOptions())._assemble({})
    state = DaemonSetState(make(selector=LabelSelector()).ds, {})
    reconciler._reconcile(state, clock.now())
    assert reasons == ["SelectingAll"]
    assert state.ledger is None  # nothing was planned or decided
