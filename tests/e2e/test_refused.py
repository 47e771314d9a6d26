"""A template that the API server refuses, or that has no room, costs no pod."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.kube.resources import Resource
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", True)
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
SURGE = {"maxSurge": 1, "maxUnavailable": 0}


@BOTH
@pytest.mark.parametrize("rolling", [{"maxUnavailable": 2}, SURGE])
async def test_a_template_that_the_api_server_refuses_costs_no_pod(
    play: Play, version: str, rolling: dict[str, Any]
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version, rolling=rolling)
        await stage.start(manifest, 3)
        seen = stage.observe(3)
        before = {pod.uid for pod in stage.all_pods()}
        name = f"{stage.namespace}-high"
        await stage.change_template(manifest, priorityClassName=name)
        await stage.until(lambda: _reason(stage, manifest) == "Refused", "it is said")
        assert f"no PriorityClass with name {name} was found" in _message(stage, manifest)
        await stage.settled(manifest)
        assert {pod.uid for pod in stage.all_pods()} == before
        assert seen.most_down == 0
        # Once the class is there, the update begins by itself.
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 1000,
        }
        await stage.make(PRIORITY_CLASSES, body)
        try:
            await stage.until(
                lambda: not before & {pod.uid for pod in stage.all_pods()}, "all are replaced"
            )
            await stage.until_complete(manifest)
        finally:
            await stage.delete(PRIORITY_CLASSES, name)


async def test_a_refused_template_is_taken_back_without_a_trace(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(rolling={"rollingUpdateType": "InPlaceIfPossible"})
        await stage.start(manifest, 2)
        before = {pod.uid for pod in stage.all_pods()}
        await stage.change_template(manifest, priorityClassName="no-such")
        await stage.until(lambda: _reason(stage, manifest) == "Refused", "it is said")
        await stage.change_template(manifest, priorityClassName=None)
        await stage.until_complete(manifest)
        assert {pod.uid for pod in stage.all_pods()} == before


async def test_a_quota_that_is_just_used_up_stops_no_update(play: Play) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        quota = await _quota(stage, pods="2")
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        if not stage.real:
            return  # the embedded server counts no quota
        await stage.patch(QUOTAS, quota, {"spec": {"hard": {"pods": "1"}}})
        await _until_counted(stage, quota, hard="1")
        await stage.set_image(manifest, "agent:v3")
        await stage.until(lambda: _reason(stage, manifest) == "Refused", "it is said")
        assert "exceeded quota" in _message(stage, manifest)
        assert len(stage.running("agent:v2")) == 2
        await stage.patch(QUOTAS, quota, {"spec": {"hard": {"pods": "2"}}})
        await stage.until_running("agent:v3", 2)


async def _quota(stage: Stage, **hard: str) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": hard},
    }
    await stage.make(QUOTAS, body)
    if stage.real:
        await _until_counted(stage, "few", hard=hard["pods"])
    return "few"


async def _until_counted(stage: Stage, name: str, *, hard: str) -> None:
    """A quota is enforced once its controller has counted."""
    while True:
        status = (await stage.get(QUOTAS, name)).get("status", {})
        if status.get("hard", {}).get("pods") == hard and "pods" in status.get("used", {}):
            return


def _reason(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None else ""


def _message(stage: Stage, manifest: dict[str, Any]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.message if condition is not None else ""
