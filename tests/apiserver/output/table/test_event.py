from __future__ import annotations

from everynode.apiserver.output.table.event import event_row


def test_both_forms_of_an_event_give_the_same_row() -> None:
    core = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "type": "Normal",
        "reason": "Started",
        "message": "It runs.\n",
        "count": 3,
        "firstTimestamp": "1970-01-01T00:00:00Z",
        "lastTimestamp": "1970-01-01T00:00:30Z",
        "source": {"component": "kubelet", "host": "n"},
    }
    newer = {
        "metadata": {"name": "e"},
        "regarding": core["involvedObject"],
        "type": "Normal",
        "reason": "Started",
        "note": "It runs.\n",
        "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "1970-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "1970-01-01T00:00:30Z",
        "deprecatedSource": {"component": "kubelet", "host": "n"},
    }
    row = event_row(core, 60.0)
    assert row == event_row(newer, 60.0)
    assert row.cells == [
        "30s",
        "Normal",
        "Started",
        "pod/p",
        "spec.containers{c}",
        "kubelet, n",
        "It runs.",
        "60s",
        3,
        "e",
    ]
