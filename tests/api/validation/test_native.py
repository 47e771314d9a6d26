from __future__ import annotations

from everynode.api.validation.native import check_status, check_status_update


def test_no_counter_is_below_zero() -> None:
    good = {"numberReady": 0, "conditions": [], "collisionCount": 1}
    assert list(check_status(good)) == []
    errors = check_status({"numberReady": -1, "observedGeneration": -2})
    assert [error.path for error in errors] == ["status.numberReady", "status.observedGeneration"]


def test_collisions_are_never_forgotten() -> None:
    old = {"collisionCount": 2}
    assert list(check_status_update(old, {"collisionCount": 2})) == []
    for new in ({"collisionCount": 1}, {}):
        (error,) = check_status_update(old, new)
        assert error.path == "status.collisionCount"
        assert error.message.endswith("cannot be decremented")
