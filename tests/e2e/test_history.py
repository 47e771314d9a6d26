"""Revisions, going back, deleting, orphans and their adoption."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.kube import verbs
from everynode.kube.requests import STRATEGIC_PATCH
from everynode.kube.resources import DAEMONSETS, PODS, REVISIONS
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset, kind_of

NATIVE = "apps/v1"
HASH = "controller-revision-hash"
BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])


async def undo(stage: Stage, manifest: dict[str, Any], number: int) -> None:
    """Go back to a revision as `kubectl rollout undo` does: patch with what is stored in it."""
    [revision] = [each for each in stage.history() if each.revision == number]
    stored = await stage.get(REVISIONS, revision.metadata.name)
    resource, name = kind_of(manifest), manifest["metadata"]["name"]
    if resource is DAEMONSETS:
        body = json.dumps(stored["data"]).encode()
        request = verbs.patch(resource, name, body, kind=STRATEGIC_PATCH, namespace=stage.namespace)
        await stage.client.write(request, bytes)
        return
    template = stored["data"]["spec"]["template"]
    template.pop("$patch")
    await stage.patch(resource, name, {"spec": {"template": template}})


@BOTH
async def test_undo_brings_an_old_revision_back_under_the_next_number(
    play: Play, version: str
) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 2})
        await stage.start(manifest, 2)
        [first] = stage.history()
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)
        assert [each.revision for each in stage.history()] == [1, 2]
        await undo(stage, manifest, 1)
        await stage.until_running("agent:v1", 2)
        await stage.until_complete(manifest)
        assert [each.revision for each in stage.history()] == [2, 3]
        assert stage.history()[-1].metadata.name == first.metadata.name
        assert {pod.hash for pod in stage.all_pods()} == {first.metadata.labels[HASH]}


@BOTH
async def test_a_name_that_a_foreign_revision_holds_is_counted_in_the_status(
    play: Play, version: str
) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 1)
        [first] = stage.history()
        await stage.delete(kind_of(manifest), "agent")
        await stage.until(lambda: not stage.history() and not stage.all_pods(), "all is gone")
        foreign = {"name": first.metadata.name, "labels": {"app": "another"}}
        body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": foreign}
        await stage.make(REVISIONS, {**body, "data": {}, "revision": 1})
        await stage.start(manifest, 1)
        await stage.until(lambda: stage.status(manifest).collision_count == 1, "one collision")
        assert stage.pod_on("node-0001").hash != first.metadata.labels[HASH]


async def test_history_shows_the_change_cause(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 1)
        cause = {"kubernetes.io/change-cause": "kubectl set image ds agent agent=agent:v2"}
        spec = {"containers": [{"name": "agent", "image": "agent:v2"}]}
        body = {"metadata": {"annotations": cause}, "spec": {"template": {"spec": spec}}}
        await stage.patch(DAEMONSETS, "agent", body)
        await stage.until_running("agent:v2", 1)
        causes = [each.metadata.annotations.get(*cause) for each in stage.history()]
        assert causes == [None, "kubectl set image ds agent agent=agent:v2"]


async def test_a_revision_stores_the_template_as_a_patch_and_is_found_by_the_selector(
    play: Play,
) -> None:
    async with play(nodes=1) as stage:
        await stage.start(daemonset(api_version=NATIVE), 1)
        [revision] = stage.history()
        stored = await stage.get(REVISIONS, revision.metadata.name)
        template = stored["data"]["spec"]["template"]
        assert template["$patch"] == "replace"
        assert template["spec"]["containers"][0]["image"] == "agent:v1"
        assert stored["metadata"]["labels"]["app"] == "agent"
        assert stored["metadata"]["name"] == f"agent-{stored['metadata']['labels'][HASH]}"
        [owner] = stored["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("DaemonSet", "agent", True)


@BOTH
async def test_revision_history_limit_keeps_the_newest(play: Play, version: str) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=version, revisionHistoryLimit=1)
        await stage.start(manifest, 1)
        for number in (2, 3, 4):
            await stage.set_image(manifest, f"agent:v{number}")
            await stage.until_running(f"agent:v{number}", 1)
        await stage.until(
            lambda: [each.revision for each in stage.history()] == [3, 4], "two revisions are left"
        )


async def test_metadata_of_the_set_makes_no_revision(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset()
        await stage.start(manifest, 1)
        await stage.patch(kind_of(manifest), "agent", {"metadata": {"labels": {"team": "a"}}})
        await stage.change(manifest, minReadySeconds=1)
        await stage.settled(manifest)
        assert [each.revision for each in stage.history()] == [1]


@BOTH
async def test_deleting_the_set_deletes_its_pods_and_revisions(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 2)
        await stage.delete(kind_of(manifest), "agent")
        await stage.until(lambda: not stage.all_pods(), "all pods are gone")
        await stage.until(lambda: not stage.history(), "all revisions are gone")


@BOTH
async def test_deleting_in_the_foreground_waits_for_the_pods(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 2)
        await stage.delete(kind_of(manifest), "agent", propagation="Foreground")
        cache = stage.natives if version == NATIVE else stage.sets
        await stage.until(lambda: not len(cache), "the set is gone")
        await stage.until(lambda: not stage.all_pods(), "no pod was made anew")


@BOTH
async def test_orphans_are_adopted_by_a_new_set_without_a_restart(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 2)
        before = [pod.uid for pod in stage.all_pods()]
        await stage.delete(kind_of(manifest), "agent", propagation="Orphan")
        cache = stage.natives if version == NATIVE else stage.sets
        await stage.until(lambda: not len(cache), "the set is gone")
        assert [pod.uid for pod in stage.all_pods()] == before
        await stage.start(manifest, 2)
        await stage.until(lambda: all(_owned(stage)), "both are adopted")
        assert [pod.uid for pod in stage.all_pods()] == before
        assert [each.revision for each in stage.history()] == [1]


async def test_a_native_set_becomes_an_advanced_one_without_a_restart(play: Play) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(api_version=NATIVE), 2)
        before = [pod.uid for pod in stage.all_pods()]
        await stage.delete(DAEMONSETS, "agent", propagation="Orphan")
        await stage.until(lambda: not len(stage.natives), "the native set is gone")
        manifest = daemonset(api_version="apps.kruise.io/v1alpha1")
        await stage.start(manifest, 2)
        await stage.until(lambda: all(_owned(stage)), "both are adopted")
        await stage.settled(manifest)
        assert [pod.uid for pod in stage.all_pods()] == before


async def test_adopted_pods_that_differ_are_replaced_by_the_update_strategy(play: Play) -> None:
    async with play(nodes=3) as stage:
        await stage.start(daemonset(api_version=NATIVE), 3)
        await stage.delete(DAEMONSETS, "agent", propagation="Orphan")
        await stage.until(lambda: not len(stage.natives), "the set is gone")
        seen = stage.observe(3)
        await stage.start(daemonset(api_version=NATIVE, image="agent:v2"), 3)
        assert seen.most_down == 1
        assert seen.most_together == 1


@pytest.mark.parametrize("label", [{HASH: "unknown"}, {}], ids=["labelled", "bare"])
async def test_an_orphan_made_by_hand_is_adopted(play: Play, label: dict[str, str]) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 2)
        await stage.make(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "extra", "labels": {"app": "agent", **label}},
                "spec": {
                    "nodeName": "node-0001",
                    "containers": [{"name": "agent", "image": "agent:v1"}],
                },
            },
        )
        await stage.until(
            lambda: (
                len([p for p in stage.on("node-0001") if not p.terminating]) == 1
                and all(_owned(stage))
            ),
            "one of the two pods goes",
        )


async def test_a_pod_that_no_longer_matches_is_released_and_replaced(play: Play) -> None:
    async with play(nodes=1) as stage:
        manifest = daemonset(api_version=NATIVE)
        await stage.start(manifest, 1)
        pod = stage.pod_on("node-0001")
        await stage.patch(PODS, pod.name, {"metadata": {"labels": {"app": "debugged"}}})
        await stage.until(lambda: len(stage.on("node-0001")) == 2, "another pod comes")
        released = next(each for each in stage.all_pods() if each.uid == pod.uid)
        assert released.metadata.controller is None
        assert not released.terminating


def _owned(stage: Stage) -> list[bool]:
    sets = [*stage.sets.all().values(), *stage.natives.all().values()]
    uids = [ds.uid for ds in sets]
    return [
        pod.metadata.controller is not None and pod.metadata.controller.uid in uids
        for pod in stage.all_pods()
    ]
