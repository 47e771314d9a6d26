from __future__ import annotations

import pytest

from tests.cluster.asking import Cluster


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()
