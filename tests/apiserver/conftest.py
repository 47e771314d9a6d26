from __future__ import annotations

import pytest

from tests.support.api_client import Cluster


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()
