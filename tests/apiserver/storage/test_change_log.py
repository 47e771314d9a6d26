from __future__ import annotations

from everynode.apiserver.storage.change_log import ChangeHistory
from everynode.apiserver.storage.store import Change, Record
from everynode.apiserver.storage.stored_body import StoredBody


def change(version: int, size: int = 0) -> Change:
    record = Record("ns", f"o{version}", "u", version, StoredBody(b"x" * size), {}, ())
    return Change("ADDED", record, None)


def test_changes_after_a_version_are_read_in_order() -> None:
    history = ChangeHistory(capacity=10_000)
    log = history.log()
    for version in (3, 5, 9):
        history.append(log, change(version))
    position = log.position(3)
    assert position is not None
    found = log.read(position, up_to_version=100, limit=10)
    assert found is not None
    assert [c.version for c in found] == [5, 9]


def test_nothing_is_shown_beyond_what_is_durable() -> None:
    history = ChangeHistory(capacity=10_000)
    log = history.log()
    for version in (3, 5, 9):
        history.append(log, change(version))
    found = log.read(0, up_to_version=5, limit=10)
    assert found is not None
    assert [c.version for c in found] == [3, 5]


def test_oldest_changes_of_all_logs_go_first_when_there_are_too_many_bytes() -> None:
    history = ChangeHistory(capacity=1_500)
    first, second = history.log(), history.log()
    history.append(first, change(1, 300))
    history.append(second, change(2, 300))
    history.append(first, change(3, 300))
    history.append(second, change(4, 300))
    assert history.size <= 1_500
    assert first.position(0) is None
    assert first.position(1) is not None
    assert second.position(0) is not None


def test_a_reader_that_fell_behind_gets_an_error() -> None:
    history = ChangeHistory(capacity=10_000)
    log = history.log()
    history.append(log, change(1))
    history.append(log, change(2))
    history.compact(1)
    assert log.read(0, up_to_version=9, limit=9) is None
    assert log.since_version(0) is None
    assert log.since_version(1) is not None


def test_quiet_log_can_be_read_from_any_version_after_its_own_last_loss() -> None:
    history = ChangeHistory(capacity=700)
    busy, quiet = history.log(), history.log()
    for version in range(1, 20):
        history.append(busy, change(version, 100))
    assert quiet.position(2) == 0
