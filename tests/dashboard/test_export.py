from __future__ import annotations

import base64
from typing import Any

from everynode.api.versions import decode_daemonset
from everynode.dashboard.export import export
from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images

MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "20%"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:2"}]},
        },
    },
}


def exported(**options: Any) -> dict[str, Any]:
    request = ForecastRequest(old=with_previous_images(MANIFEST), new=MANIFEST, nodes=10, **options)
    answer, recording = record(request)
    return export(answer, recording, decode_daemonset(MANIFEST), facts=[], summary="Done.")


def play(document: dict[str, Any]) -> list[int]:
    states = list(base64.b64decode(document["states"]))
    for _, change in document["frames"]:
        for at, state in zip(change["at"], change["states"], strict=True):
            states[at] = state
    return states


def test_the_frames_lead_from_the_start_to_the_end() -> None:
    document = exported(failing=1)
    assert set(base64.b64decode(document["states"])) == {1}
    states = play(document)
    ends = document["frames"][-1][1]["set"]
    assert states.count(5) == ends["counts"]["updated"]
    assert states.count(6) == 1
    assert ends["message"] == "Done."
    assert document["set"]["budget"] == {
        "field": "maxUnavailable",
        "written": "20%",
        "promised": 2,
    }
    times = [seconds for seconds, _ in document["frames"]]
    assert times == sorted(times)
    assert times[-1] <= document["end"]


def test_labels_that_tell_nodes_apart_can_group_them() -> None:
    labels = exported(labels=(("zone", "a", 4), ("all", "same", 10)))["nodes"]["labels"]
    assert labels["zone"]["values"] == ["a"]
    assert labels["zone"]["of"].count(0) == 4
    assert "all" not in labels
