from __future__ import annotations

from everynode.dashboard.cells import CellState, with_reason
from everynode.dashboard.story import Diary

OLD, TAKEN = int(CellState.OLD), int(CellState.TAKEN)
WAITING = with_reason(CellState.WAITING, 1)


def test_a_diary_tells_the_changes_of_one_node_in_order() -> None:
    diary = Diary()
    names = ("n1", "n2")
    diary.note(names, bytes([OLD, OLD]), bytes([OLD, OLD]), 1.0)
    diary.note(names, bytes([OLD, OLD]), bytes([TAKEN, OLD]), 2.0)
    diary.note(names, bytes([TAKEN, OLD]), bytes([WAITING, TAKEN]), 3.0)
    assert [(each.at, each.state) for each in diary.of("n1")] == [(2.0, TAKEN), (3.0, WAITING)]
    assert [each.at for each in diary.of("n2")] == [3.0]
    assert diary.of("n3") == []
