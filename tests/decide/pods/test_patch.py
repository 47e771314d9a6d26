from __future__ import annotations

from everynode.decide.actions import Cause
from everynode.decide.pods.patch import patch_pod
from tests.support.samples import pod, pod_json, read_pod


def test_every_patch_is_for_the_pod_that_was_looked_at() -> None:
    patch = patch_pod(pod(), Cause.GATE, metadata={"labels": {"a": "b"}})
    guard = {"uid": "pod-uid", "resourceVersion": "42"}
    assert patch.body == {"metadata": {"labels": {"a": "b"}, **guard}}
    assert (patch.node, patch.name, patch.uid) == ("n1", "agent-1", "pod-uid")


def test_the_guard_cannot_be_overruled() -> None:
    patch = patch_pod(pod(), Cause.GATE, metadata={"resourceVersion": "1", "uid": "x"})
    assert patch.body["metadata"] == {"uid": "pod-uid", "resourceVersion": "42"}


def test_an_unscheduled_pod_is_of_the_node_it_is_pinned_to() -> None:
    made = pod_json()
    field = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    term = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    made["spec"] = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    }
    assert read_pod(made).node == "n7"
