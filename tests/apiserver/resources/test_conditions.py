from __future__ import annotations

from typing import Any

from everynode.apiserver.resources.conditions import find_condition, is_true, set_condition


def test_time_moves_only_with_the_status() -> None:
    status: dict[str, Any] = {}
    set_condition(status, {"type": "Ready", "status": "False"}, "t1")
    set_condition(status, {"type": "Ready", "status": "False", "reason": "Other"}, "t2")
    assert status["conditions"] == [
        {"type": "Ready", "status": "False", "reason": "Other", "lastTransitionTime": "t1"}
    ]
    set_condition(status, {"type": "Ready", "status": "True"}, "t3")
    assert status["conditions"] == [{"type": "Ready", "status": "True", "lastTransitionTime": "t3"}]


def test_other_conditions_stay() -> None:
    status: dict[str, Any] = {"conditions": [{"type": "A", "status": "True"}]}
    set_condition(status, {"type": "B", "status": "True"}, "t")
    obj = {"status": status}
    assert is_true(obj, "A")
    assert is_true(obj, "B")
    assert find_condition(obj, "C") is None
    assert not is_true({}, "A")
