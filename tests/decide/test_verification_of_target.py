"""No pod is taken for a target before the API server has accepted one of its pods (R4)."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.daemonset import (
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    RollingUpdateType,
    UpdateStrategy,
    UpdateStrategyType,
)
from everynode.decide.decision import Decision
from everynode.decide.fleet.verification import NO_VERDICT, Verdict
from everynode.decide.ledger import Ledger
from everynode.decide.view import NodeView
from tests.support.fleet import NEW, NOW, OLD, brief, make, pod, see

RECREATE = UpdateStrategy(max_unavailable=IntOrPercent(2))
SURGE = UpdateStrategy(max_unavailable=IntOrPercent(0), max_surge=IntOrPercent(1))
IN_PLACE = UpdateStrategy(rolling=RollingUpdateType.IN_PLACE, max_unavailable=IntOrPercent(1))
STRATEGIES = pytest.mark.parametrize("strategy", [RECREATE, SURGE, IN_PLACE])


def _olds(count: int = 3, **traits: Any) -> list[NodeView]:
    return [see(f"n{i}", pod(OLD, on=f"n{i}", **traits)) for i in range(1, count + 1)]


def _decide(ledger: Ledger, verdict: Verdict = NO_VERDICT) -> Decision:
    return ledger.decide(NOW, DaemonSetStatus(), verdict=verdict)


def _ledger(strategy: UpdateStrategy, *views: NodeView) -> Ledger:
    return Ledger(make(strategy=strategy, flavour=Flavour.ADVANCED), views)


@STRATEGIES
@pytest.mark.parametrize("ready", [True, False])
def test_nothing_is_taken_before_the_verdict(strategy: UpdateStrategy, ready: bool) -> None:
    ledger = _ledger(strategy, *_olds(ready=ready))
    asked = _decide(ledger)
    assert asked.actions == ()
    assert asked.verification is not None
    assert asked.verification.action.revision == NEW
    assert asked.verification.action.node == "n3"
    progressing = next(c for c in asked.status.conditions if c.type == "Progressing")
    assert (progressing.status, progressing.reason) == ("True", "RollingOut")
    assert _decide(ledger).verification == asked.verification  # until there is one
    accepted = _decide(ledger, Verdict(NEW))
    assert accepted.actions
    assert accepted.verification is None


@STRATEGIES
def test_a_refused_target_is_reported_in_the_words_of_the_server(strategy: UpdateStrategy) -> None:
    ledger = _ledger(strategy, *_olds())
    decision = _decide(ledger, Verdict(NEW, "no PriorityClass with name high was found"))
    assert decision.actions == ()
    assert decision.verification is not None  # it is asked again
    conditions = {each.type: each for each in decision.status.conditions}
    assert conditions["Progressing"].reason == conditions["Complete"].reason == "Refused"
    assert "no PriorityClass with name high was found" in conditions["Progressing"].message
    assert decision.notices == ()  # the dry run that was refused has an event
    assert conditions["TargetRefused"].status == "True"
    assert conditions["TargetRefused"].message == "no PriorityClass with name high was found"
    later = _decide(ledger, Verdict(NEW))
    assert later.actions
    assert "PriorityClass" not in str(later.status.conditions)


def test_a_verdict_on_another_target_says_nothing() -> None:
    ledger = _ledger(RECREATE, *_olds())
    decision = _decide(ledger, Verdict("v9", "not today"))
    assert decision.actions == ()
    assert decision.verification is not None
    assert "not today" not in str(decision.status.conditions)


def test_an_available_pod_of_the_target_is_proof_enough() -> None:
    ledger = _ledger(RECREATE, *_olds(), see("n4", pod(NEW, on="n4")))
    decision = _decide(ledger)
    assert decision.verification is None
    assert len(decision.actions) == 2


def test_missing_pods_are_created_and_misplaced_ones_removed_without_a_verdict() -> None:
    ledger = _ledger(RECREATE, *_olds(1), see("n2"))
    decision = _decide(ledger, Verdict(NEW, "not today"))
    assert brief(decision.actions) == [f"create n2 {NEW} Missing"]


@pytest.mark.parametrize(
    "strategy",
    [
        UpdateStrategy(type=UpdateStrategyType.ON_DELETE),
        UpdateStrategy(paused=True),
        UpdateStrategy(partition=IntOrPercent(100, percent=True)),
    ],
)
def test_no_dry_run_is_asked_for_while_nothing_is_to_be_taken(strategy: UpdateStrategy) -> None:
    assert _decide(_ledger(strategy, *_olds())).verification is None
    assert _decide(_ledger(RECREATE, see("n1", pod(NEW, on="n1")))).verification is None


def test_the_pod_that_goes_first_is_given_to_the_quota_unless_both_exist() -> None:
    recreate = _decide(_ledger(RECREATE, *_olds())).verification
    surge = _decide(_ledger(SURGE, *_olds())).verification
    assert recreate is not None
    assert surge is not None
    assert recreate.gives_way is not None
    assert recreate.gives_way.name == "agent-n3-v1"
    assert surge.gives_way is None
