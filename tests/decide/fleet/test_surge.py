from __future__ import annotations

import pytest

from everynode.decide.fleet.surge import surge_room


@pytest.mark.parametrize(
    ("limit", "two_pods", "lost", "outage", "room"),
    [
        (2, 0, 0, False, 2),
        (2, 1, 0, False, 1),
        (2, 5, 0, False, 0),
        (2, 0, 1, False, 2),
        (2, 0, 1, True, 1),
    ],
)
def test_at_most_max_surge_nodes_have_two_pods(
    limit: int, two_pods: int, lost: int, outage: bool, room: int
) -> None:
    assert surge_room(limit, two_pods, lost, outage=outage) == room
