from __future__ import annotations

from typing import Any

from everynode.api.defaults import default_pod
from everynode.apiserver.resources.pod_spec_cache import default_pod_spec, spec_faults


def pod(node: str = "", **spec: Any) -> dict[str, Any]:
    if node:
        spec["nodeName"] = node
    containers = [{"name": "c", "image": "agent:1"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def test_pods_that_are_alike_get_the_same_defaults_and_keep_their_node() -> None:
    for node in ("n1", "n2", "n3"):
        assert default_pod_spec(pod(node)) == default_pod(pod(node))


def test_what_is_remembered_is_not_changed_through_a_pod() -> None:
    default_pod_spec(pod())["spec"]["containers"].append("rubbish")
    default_pod_spec(pod())["spec"]["containers"].append("rubbish")
    assert default_pod_spec(pod()) == default_pod(pod())


def test_old_annotations_go_whether_or_not_the_spec_is_known() -> None:
    key = "pod.beta.kubernetes.io/init-containers"
    for _ in range(2):
        body = pod()
        body["metadata"]["annotations"] = {key: "x", "mine": "y"}
        assert default_pod_spec(body)["metadata"]["annotations"] == {"mine": "y"}


def test_wrong_spec_is_wrong_every_time() -> None:
    body = default_pod_spec(pod(restartPolicy="Sometimes"))
    assert spec_faults(body) == spec_faults(body) != []


def test_affinity_is_evaluated_every_time() -> None:
    assert spec_faults(default_pod_spec(pod())) == []
    term = {"matchFields": [{"key": "metadata.labels", "operator": "In", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert spec_faults(default_pod_spec(pod(affinity={"nodeAffinity": required}))) != []


def test_the_order_of_members_does_not_tell_whether_such_a_pod_was_seen_before() -> None:
    seen = [list(default_pod_spec(pod("n1", affinity={}, hostname="first"))["spec"]) for _ in "12"]
    assert seen[0] == seen[1]
