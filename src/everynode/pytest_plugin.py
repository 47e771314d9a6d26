"""Plugin of pytest: the fixture `everynode_cluster` (docs/python.md). It imports nothing early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from everynode.embedded_cluster import EmbeddedCluster


@pytest.fixture
def everynode_cluster() -> Iterator[EmbeddedCluster]:
    """An embedded cluster of three nodes, twenty times faster than reality, for one test."""
    from everynode.embedded_cluster import EmbeddedCluster

    with EmbeddedCluster(nodes=3, speed=20) as cluster:
        yield cluster
