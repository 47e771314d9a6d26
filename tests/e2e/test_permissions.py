"""The role that is installed permits exactly what the controller does.

Every scenario runs with a transport that refuses what the role does not permit, so nothing is
missing. Here everything the role permits is seen to be used, so nothing is there to spare.
"""

from __future__ import annotations

import asyncio

from everynode.controller.leader import Election
from everynode.controller.run import Controller, ControllerOptions
from everynode.kube.resources import PODS, REVISIONS
from everynode.kube.watch.cache import parse_resource_version
from tests.e2e.conftest import Play
from tests.e2e.test_history import HASH
from tests.e2e.test_pods import finish, until_gone
from tests.support.stage import Stage, daemonset, kind_of
from tests.support.transports import Access, Older, Permitted, granted

# Asked of the API server by itself, on clusters that protect owners from being blocked.
IMPLIED = {
    Access("apps", "daemonsets/finalizers", "update"),
    Access("apps.kruise.io", "daemonsets/finalizers", "update"),
}


async def test_everything_the_role_permits_is_used(play: Play) -> None:
    async with play(nodes=2) as stage:
        await _use_revisions(stage, "apps/v1")
        await _use_revisions(stage, "apps.kruise.io/v1beta1")
        await _meet_a_foreign_revision(stage)
        await _use_updates_in_place(stage)
        await _lose_a_label(stage)
        await _meet_a_foreign_pod(stage)
        await _say_the_same_again(stage)
        await _lead(stage)
        assert granted() - IMPLIED - stage.permitted.used == set()
        assert stage.permitted.refused == []


async def _use_revisions(stage: Stage, version: str) -> None:
    """Create, adopt, update, go on until old revisions are pruned."""
    name = version.partition(".")[0].replace("/", "-")
    manifest = daemonset(name, api_version=version, revisionHistoryLimit=0, image=f"{name}:1")
    await stage.start(manifest, 2)
    await stage.delete(kind_of(manifest), name, propagation="Orphan")
    await stage.until(lambda: stage._found(manifest) is None, "the set is gone")
    await stage.start(manifest, 2)
    for step in (2, 3):
        await stage.set_image(manifest, f"{name}:{step}")
        await stage.until_running(f"{name}:{step}", 2)
    await stage.until(lambda: 1 not in _numbers(stage, name), "the first revision is pruned")
    [pod, _] = [pod for pod in stage.all_pods() if pod.metadata.labels["app"] == name]
    await finish(stage, pod, "Failed")
    await until_gone(stage, pod)


def _numbers(stage: Stage, name: str) -> list[int]:
    return [each.revision for each in stage.history() if each.metadata.labels.get("app") == name]


async def _meet_a_foreign_revision(stage: Stage) -> None:
    """A revision of another owner has the name that ours would have."""
    manifest = daemonset("twice", image="twice:1")
    await stage.start(manifest, 2)
    [name] = [each.metadata.name for each in stage.history() if "twice" in each.metadata.name]
    await stage.delete(kind_of(manifest), "twice")
    await stage.until(lambda: not _numbers(stage, "twice"), "its revision is gone")
    meta = {"name": name, "labels": {"of": "another"}}
    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta}
    await stage.make(REVISIONS, {**body, "revision": 1, "data": {"any": "thing"}})
    await stage.until(lambda: not stage.running("twice:1"), "its pods are gone")
    await stage.start(manifest, 2)


async def _use_updates_in_place(stage: Stage) -> None:
    amounts = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "agent", "image": "agent:v1", "resources": {"requests": amounts}}
    manifest = daemonset(
        rolling={"rollingUpdateType": "InPlaceIfPossible"},
        template={"spec": {"containers": [container]}},
    )
    await stage.start(manifest, 2)
    bigger = {**container, "image": "agent:v2", "resources": {"requests": {**amounts, "cpu": "2"}}}
    await stage.change_template(manifest, containers=[bigger])
    await stage.until_running("agent:v2", 2)
    await stage.until_complete(manifest)


async def _lose_a_label(stage: Stage) -> None:
    """A pod of ours without the label by which we see it holds the name of its successor."""
    manifest = daemonset("lost", image="lost:1")
    await stage.start(manifest, 2)
    pod = next(pod for pod in stage.on("node-0001") if pod.metadata.labels["app"] == "lost")
    answer = await stage.patch(PODS, pod.name, {"metadata": {"labels": {HASH: None}}})
    version = parse_resource_version(answer["metadata"]["resourceVersion"])

    def is_back() -> bool:
        now = stage.pods.get(f"{stage.namespace}/{pod.name}")
        assert now is not None
        return (
            parse_resource_version(now.metadata.resource_version) > version
            and HASH in now.metadata.labels
        )

    await stage.until(is_back, "the label is back")


async def _meet_a_foreign_pod(stage: Stage) -> None:
    """A pod of another owner has the name that ours would have: the controller looks at it."""
    manifest = daemonset("named", template={"spec": {"nodeSelector": {"named": "yes"}}})
    await stage.label_node("node-0001", named="yes")
    await stage.start(manifest, 1)
    [pod] = [pod for pod in stage.on("node-0001") if pod.metadata.labels["app"] == "named"]
    await stage.label_node("node-0001", named=None)
    await until_gone(stage, pod)
    container = {"name": "other", "image": "other:1"}
    await stage.make(PODS, {"metadata": {"name": pod.name}, "spec": {"containers": [container]}})
    await stage.label_node("node-0001", named="yes")
    looked = Access("", "pods", "get")
    await stage.until(lambda: looked in stage.permitted.used, "the other pod is looked at")


async def _say_the_same_again(stage: Stage) -> None:
    """What cannot be created is said once, and counted after that."""
    manifest = daemonset("refused")
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "no-such-class"
    await stage.create(manifest)
    counted = Access("", "events", "patch")
    await stage.until(lambda: counted in stage.permitted.used, "an event is counted up")


async def _lead(stage: Stage) -> None:
    """Take a lease, renew it, give it back, on a server without watch-list."""
    await stage.stop_controller()
    older = Permitted(Older(stage.transport))
    leadership = Election(older, stage.clock, identity="another", namespace=stage.namespace)
    assert stage._tasks is not None
    options = ControllerOptions(native=True, namespace=stage.namespace)
    controller = Controller(older, stage.clock, options, leadership=leadership)
    running = stage._tasks.create_task(controller.run())
    await leadership.elected()
    for watcher in controller.watchers:
        await watcher.settled()
    running.cancel()
    await asyncio.wait([running])
    stage.permitted.used |= older.used
    stage.permitted.refused += older.refused
