from __future__ import annotations

from typing import Any

import pytest

from everynode.forecast.prepared_manifest import (
    prepare_manifest,
    with_previous_images,
    without_rollout_limits,
)
from everynode.sim.plans.manifests import daemonset


def gpu() -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 1, "cpu": "1"}
    manifest = daemonset(
        rolling={"partition": 3, "paused": True},
        template={
            "serviceAccountName": "gpu",
            "priorityClassName": "very-important",
            "containers": [{"name": "a", "image": "b", "resources": {"limits": limits}}],
        },
    )
    manifest["metadata"] |= {"namespace": "gpu-system", "uid": "1", "annotations": {"a": "b"}}
    manifest["status"] = {"currentNumberScheduled": 3}
    return manifest


def test_a_copy_needs_nothing_but_nodes() -> None:
    manifest = gpu()
    made = prepare_manifest(manifest)
    spec = made["spec"]["template"]["spec"]
    assert made["metadata"] == {
        "name": "agent",
        "namespace": "default",
        "annotations": {"a": "b"},
    }
    assert "status" not in made
    assert spec == {
        "containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": "1"}}}]
    }
    assert manifest == gpu(), "the manifest itself was changed"


def test_priorities_of_the_system_stay() -> None:
    manifest = daemonset(template={"priorityClassName": "system-node-critical"})
    spec = prepare_manifest(manifest)["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "system-node-critical"


def test_what_ran_before_differs_in_its_images_alone() -> None:
    manifest = daemonset(image="registry.example/agent:1.0")
    old = with_previous_images(manifest)
    container = old["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/agent:the-one-before"
    container["image"] = "registry.example/agent:1.0"
    assert old == manifest


def test_nothing_is_held_in_what_is_installed() -> None:
    made = without_rollout_limits(gpu())
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize(
    "spec", [{}, {"template": None}, {"template": {"spec": {"containers": ["no"]}}}]
)
def test_what_is_no_manifest_is_left_for_the_server_to_refuse(spec: dict[str, Any]) -> None:
    manifest = {"apiVersion": "apps/v1", "metadata": {"name": "x"}, "spec": spec}
    assert with_previous_images(prepare_manifest(manifest))["spec"] == spec
