from __future__ import annotations

from everynode.api.times import format_time
from everynode.dashboard.cells import CellState, with_reason
from everynode.dashboard.story import Diary, SeenChange, timeline
from everynode.inspect.pod_trouble import PodEvent
from tests.support.samples import NOW, condition, pod

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


def test_a_timeline_puts_what_happened_within_one_second_in_its_order() -> None:
    made = pod(
        metadata={"creationTimestamp": format_time(NOW)}, conditions=[condition("Ready", since=NOW)]
    )
    events = [PodEvent("Normal", kind, "text", 1, NOW) for kind in ("Scheduled", "Started")]
    events.append(PodEvent("Warning", "Unhealthy", "text", 3, NOW - 0.5))
    seen = [SeenChange(NOW + 0.4, "n1", int(CellState.UPDATED))]
    assert [each["text"] for each in timeline(seen, [made], events)] == [
        "Unhealthy: text (3 times)",
        "pod agent-1 created",
        "Scheduled: text",
        "Started: text",
        "pod agent-1 Ready",
        "updated",
    ]
