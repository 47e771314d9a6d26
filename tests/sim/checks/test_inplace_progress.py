from __future__ import annotations

import msgspec
import pytest

from everynode.api import keys
from everynode.sim.checks.inplace_progress import is_in_place_done
from tests.support.samples import container_status, pod

NEW = "registry.example/agent:1"
BEFORE = {"imageID": "sha256:old", "containerID": "c1"}
MID = "registry.example/agent:mid"


@pytest.mark.parametrize(
    ("image", "image_id", "container", "last", "done"),
    [
        (NEW, "sha256:new", "c2", BEFORE, True),
        ("stable", "sha256:new", "c2", BEFORE, True),
        (NEW, "sha256:old", "c2", BEFORE, True),
        (NEW, "sha256:new", "c1", BEFORE, False),
        ("old", "sha256:old", "c2", BEFORE, False),
        (MID, "sha256:mid", "c2", {**BEFORE, "image": MID}, False),
        (NEW, "sha256:old", "c1", {**BEFORE, "image": MID}, True),
    ],
)
def test_an_update_in_place_is_done_when_its_image_runs(
    image: str, image_id: str, container: str, last: dict[str, str], done: bool
) -> None:
    state = {"revision": "aaa", "lastContainerStatuses": {"agent": last}}
    status = container_status("agent", image, imageID=image_id, containerID=container)
    noted = {keys.INPLACE_STATE: msgspec.json.encode(state).decode()}
    assert is_in_place_done(pod(statuses=[status], annotations=noted)) is done
