from __future__ import annotations

from typing import Any

import pytest

from everynode.cli.simulation.forecast import forecast_lines, parse_question, summary
from everynode.errors import UserError
from everynode.forecast.answer import Forecast
from everynode.forecast.forecast import ForecastRequest
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Timing

OUTAGE = "nodes are an outage, and all of them count."
UNREADY = "that did not become ready"
TYPED: dict[str, Any] = {
    "nodes": 500,
    "fail": "3%",
    "fail_how": "never-ready",
    "notready": "10",
    "pull": "5s",
    "start": "1m",
    "stop": "10s",
    "hook": "0s",
    "label": ("canary=true:5", "gpu=yes"),
    "seed": 7,
}


def answer(**more: Any) -> Forecast:
    usual: dict[str, Any] = {
        "name": "agent",
        "ending": "complete",
        "seconds": 60.0,
        "nodes": 500,
        "updated": 500,
        "held": 0,
        "to_come": 0,
        "stuck": (),
        "silent": (),
        "surging": False,
        "budget": 10,
        "most_down": 10,
        "most_doubled": 0,
        "partition": 0,
        "selector": False,
        "paused": False,
        "on_delete": False,
        "writes": {"events": 50, "pods": 1000, "status": 200},
        "message": "",
        "curve": ((0.0, 0, 10), (60.0, 500, 0)),
    }
    return Forecast(**usual | more)


def text_of(question: ForecastRequest, found: Forecast, *, assumed: bool = True) -> str:
    return "\n".join(line for line, _ in forecast_lines(question, found, assumed=assumed))


def test_what_is_typed_becomes_a_question() -> None:
    question = parse_question([daemonset()], TYPED)
    assert (question.nodes, question.failing, question.not_ready, question.seed) == (500, 15, 10, 7)
    assert question.timing == Timing(pull=5.0, start=60.0, stop=10.0)
    assert question.labels == (("canary", "true", 5), ("gpu", "yes", 500))
    assert question.old != question.new == daemonset()


def test_the_first_of_two_is_the_current_one() -> None:
    old, new = daemonset(image="agent:v1"), daemonset(image="agent:v2")
    question = parse_question([old, new], TYPED)
    assert (question.old, question.new) == (old, new)


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ([daemonset()] * 3, "give one DaemonSet, or two"),
        ([daemonset("a"), daemonset("b")], "two DaemonSets"),
        ([daemonset(), daemonset(api_version="apps/v1")], "two different kinds"),
    ],
)
def test_what_is_no_update_is_refused(manifests: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_question(manifests, TYPED)


@pytest.mark.parametrize("label", ["x", "=y", "x=y:z", "x=y:501"])
def test_labels_that_mean_nothing_are_refused(label: str) -> None:
    with pytest.raises(UserError, match="--label"):
        parse_question([daemonset()], {**TYPED, "label": (label,)})


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (answer(), "Complete after 1 min: the new version runs on all 500 nodes."),
        (
            answer(updated=490, silent=("n",) * 10),
            "Complete after 1 min: the new version runs on all 490 nodes that can be reached.",
        ),
        (
            answer(ending="stopped", updated=200, stuck=("n",) * 10, to_come=290),
            f"Stops after 1 min at 200 of 500 nodes: 10 nodes {UNREADY} use up maxUnavailable.",
        ),
        (
            answer(ending="stopped", updated=200, stuck=("n",), budget=1, surging=True),
            f"Stops after 1 min at 200 of 500 nodes: 1 node {UNREADY} uses up maxSurge.",
        ),
        (
            answer(ending="stopped", updated=200, to_come=300, message="it is tired"),
            "Stops after 1 min at 200 of 500 nodes: it is tired.",
        ),
        (
            answer(ending="incomplete", updated=495, stuck=("n",) * 5),
            "Ends after 1 min at 495 of 500 nodes: 5 nodes did not become ready.",
        ),
        (
            answer(ending="held", updated=50, held=450, partition=450),
            "Holds at 50 of 500 nodes after 1 min: partition holds 450 nodes back.",
        ),
        (
            answer(ending="held", updated=50, held=450, selector=True),
            "Holds at 50 of 500 nodes after 1 min: the selector leaves out 450 nodes.",
        ),
        (
            answer(ending="held", updated=0, seconds=0.0, held=500, paused=True),
            "Holds at 0 of 500 nodes from the start: it is paused.",
        ),
        (
            answer(ending="held", updated=5, held=495, partition=400, selector=True),
            "Holds at 5 of 500 nodes after 1 min: partition and the selector hold 495 nodes back.",
        ),
        (
            answer(ending="stopped", updated=5, silent=("n",) * 60, to_come=435),
            f"Stops after 1 min at 5 of 500 nodes: 60 NotReady {OUTAGE}",
        ),
        (answer(ending="unchanged"), "Nothing changes: both describe the same pods."),
    ],
)
def test_one_sentence_says_how_it_ends(found: Forecast, sentence: str) -> None:
    assert summary(found) == sentence


def test_assumptions_are_named() -> None:
    hook = {"preDelete": {"labelsHandler": {"hook": "yes"}}}
    manifest = daemonset(rolling={"maxUnavailable": "2%"}, lifecycle=hook, min_ready=5)
    text = text_of(parse_question([manifest], {**TYPED, "hook": "90s"}), answer())
    assert "all nodes run the same already, with other images" in text
    assert "a node takes 5 s to pull, 1 min to start, 10 s to stop" in text
    assert "10 nodes NotReady from the start" in text
    assert "on 15 nodes the new version never becomes ready" in text
    assert "the preDelete hook lets a pod go after 1 min 30 s" in text
    assert "RollingUpdate, maxUnavailable 2%, minReadySeconds 5" in text


def test_figures_stand_beside_what_was_promised() -> None:
    text = text_of(parse_question([daemonset()], TYPED), answer())
    assert "at most 10 at once, promised 10" in text
    assert "500.0 nodes a minute" in text
    assert "2.5 per pod: 2.0 pods, 0.4 status, 0.1 events" in text
    assert "BROKEN" not in text
    assert "BROKEN" in text_of(parse_question([daemonset()], TYPED), answer(most_down=11))


def test_who_is_stuck_is_named_and_what_to_do() -> None:
    stuck = tuple(f"node-{number}" for number in range(10))
    text = text_of(
        parse_question([daemonset()], TYPED),
        answer(ending="stopped", updated=200, stuck=stuck, to_come=290),
    )
    assert "node-0, node-1, node-2, node-3, node-4 and 5 more" in text
    assert "290 nodes at the old version" in text
    assert "Mend the new one or go back to the old" in text


def test_two_files_leave_nothing_to_assume_about_what_runs() -> None:
    old, new = daemonset(image="agent:v1"), daemonset(image="agent:v2")
    assert "with other images" not in text_of(
        parse_question([old, new], TYPED), answer(), assumed=False
    )


def test_a_selector_that_matches_no_node_asks_for_labels() -> None:
    found = answer(ending="held", updated=0, seconds=0.0, held=500, selector=True)
    assert "give some with --label" in text_of(parse_question([daemonset()], TYPED), found)
