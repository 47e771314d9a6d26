"""The moments at which connections are read in batches."""

from __future__ import annotations

import pytest

from everynode.kube.http.read_batching import READ_INTERVAL, ReadBatcher


def test_all_connections_are_read_at_the_same_moments() -> None:
    batcher = ReadBatcher()
    assert batcher.next_response_read(100.0) is None
    moment = batcher.next_read(100.01, 1000)
    assert 0 < moment - 100.01 <= READ_INTERVAL
    assert batcher.next_read(100.03, 1000) == batcher.next_response_read(100.02) == moment


def test_where_much_comes_it_is_read_less_often() -> None:
    moments = [100.01]
    batcher = ReadBatcher()
    for _ in range(5):
        moments.append(batcher.next_read(moments[-1] + 0.001, 100_000))
    assert moments[-1] - moments[-2] == pytest.approx(2 * READ_INTERVAL)


def test_a_response_after_a_silence_does_not_wait() -> None:
    batcher = ReadBatcher()
    batcher.next_read(100.0, 1000)
    assert batcher.next_response_read(100.0 + 3 * READ_INTERVAL) is None
