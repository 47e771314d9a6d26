from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.resources.qos import qos_class

FULL = {"cpu": "1", "memory": "1Gi"}


def pod(*resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{i}", "resources": each} for i, each in enumerate(resources)]
    return {"spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("made", "quality"),
    [
        (pod({}), "BestEffort"),
        (pod({"requests": {"cpu": "0"}}), "BestEffort"),
        (pod({"requests": {"cpu": "1"}}), "Burstable"),
        (pod({"limits": FULL, "requests": FULL}), "Guaranteed"),
        (pod({"limits": FULL, "requests": {"cpu": "1000m", "memory": "1024Mi"}}), "Guaranteed"),
        (pod({"limits": FULL, "requests": FULL}, {}), "Burstable"),
        (pod({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}), "Burstable"),
        (pod({"limits": FULL, "requests": {**FULL, "cpu": "500m"}}), "Burstable"),
        (pod({}, resources={"limits": FULL, "requests": FULL}), "Guaranteed"),
    ],
)
def test_quality_follows_from_requests_and_limits(made: dict[str, Any], quality: str) -> None:
    assert qos_class(made) == quality
