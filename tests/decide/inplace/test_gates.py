from __future__ import annotations

from everynode.api import keys
from everynode.api.times import format_time
from everynode.decide.actions import Cause
from everynode.decide.inplace.gates import GateWrite, gate_patch, has_gate, is_open
from tests.support.samples import NOW, Object, condition, pod

GATE = keys.INPLACE_UPDATE_READY
SHUT = GateWrite(GATE, open=False, reason="Because")
OPEN = GateWrite(GATE, open=True)


def written(wanted: GateWrite, **made: object) -> dict[str, Object]:
    patch = gate_patch(pod(**made), (wanted,), now=NOW, cause=Cause.GATE)
    assert patch.subresource == "status"
    return {each["type"]: each for each in patch.body["status"]["conditions"]}


def test_a_closed_gate_takes_ready_with_it() -> None:
    conditions = written(SHUT)
    assert conditions[GATE]["status"] == "False"
    assert conditions[GATE]["reason"] == "Because"
    assert conditions[keys.READY] == {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": f'the status of pod readiness gate "{GATE}" is not "True", but False',
        "lastTransitionTime": format_time(NOW),
    }


def test_every_closed_gate_is_named() -> None:
    conditions = written(
        SHUT,
        gates=(GATE, "Mine", "Other"),
        conditions=[
            condition(keys.READY),
            condition(keys.CONTAINERS_READY),
            condition("Mine", "Unknown"),
        ],
    )
    assert conditions[keys.READY]["message"] == (
        f'the status of pod readiness gate "{GATE}" is not "True", but False, '
        'the status of pod readiness gate "Mine" is not "True", but Unknown, '
        'corresponding condition of pod readiness gate "Other" does not exist.'
    )


def test_ready_is_left_to_the_kubelet_when_gates_open() -> None:
    shut = [condition(keys.CONTAINERS_READY), condition(GATE, "False", reason="Because")]
    assert written(OPEN, gates=(GATE,), conditions=shut) == {
        GATE: {
            "type": GATE,
            "status": "True",
            "reason": None,
            "message": None,
            "lastTransitionTime": format_time(NOW),
        }
    }


def test_ready_is_left_alone_while_containers_are_not_ready() -> None:
    conditions = [condition(keys.READY, "False"), condition(keys.CONTAINERS_READY, "False")]
    assert list(written(SHUT, conditions=conditions)) == [GATE]


def test_the_time_moves_only_with_the_status() -> None:
    same = written(SHUT, conditions=[condition(GATE, "False", since=NOW - 50)])
    assert "lastTransitionTime" not in same[GATE]
    timeless = written(SHUT, conditions=[condition(GATE, "False", since=None)])
    assert timeless[GATE]["lastTransitionTime"] == format_time(NOW)


def test_a_first_opening_does_not_lose_against_the_kubelet() -> None:
    new = pod(conditions=[])
    patch = gate_patch(new, (OPEN,), now=NOW, cause=Cause.GATE)
    assert patch.body["metadata"] == {"uid": "pod-uid"}


def test_every_other_change_of_a_gate_is_for_the_pod_as_it_was() -> None:
    for wanted, conditions in ((SHUT, []), (OPEN, [condition(GATE, "False")])):
        patch = gate_patch(pod(conditions=conditions), (wanted,), now=NOW, cause=Cause.GATE)
        assert patch.body["metadata"]["resourceVersion"] == "42"


def test_a_gate_is_open_only_when_its_condition_is_true() -> None:
    assert has_gate(pod(), GATE)
    assert not has_gate(pod(gates=()), GATE)
    assert is_open(pod(), GATE)
    assert not is_open(pod(conditions=[]), GATE)
    assert not is_open(pod(conditions=[condition(GATE, "Unknown")]), GATE)
