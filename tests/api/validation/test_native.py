from __future__ import annotations

from everynode.api.validation.native import check_status, check_status_update


def test_no_counter_is_below_zero() -> None:
    good = {"numberReady": 0, "conditions": [], "collisionCount": 1}
    assert list(check_status(good)) == []
    faults = check_status({"numberReady": -1, "observedGeneration": -2})
    assert [fault.path for fault in faults] == ["status.numberReady", "status.observedGeneration"]


def test_collisions_are_never_forgotten() -> None:
    old = {"collisionCount": 2}
    assert list(check_status_update(old, {"collisionCount": 2})) == []
    for new in ({"collisionCount": 1}, {}):
        (fault,) = check_status_update(old, new)
        assert fault.path == "status.collisionCount"
        assert fault.message.endswith("cannot be decremented")
