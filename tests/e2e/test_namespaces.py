"""Rights in one namespace give no power over the DaemonSets of another."""

from __future__ import annotations

import json
from typing import Any

from everynode.api.keys import PULL_POD_OWNER, REVISION_HASH
from everynode.controller.run import ControllerOptions
from everynode.decide.fleet.conditions import FAULTY
from everynode.kube import verbs
from everynode.kube.resources import NAMESPACES, PODS, REVISIONS, Resource
from tests.e2e.conftest import Play
from tests.e2e.test_history import BOTH
from tests.support.stage import Stage, daemonset

Object = dict[str, Any]
KEPT = "example.com/kept"  # a finalizer: the garbage collector cannot remove what has it


class Intruder:
    """A person with all rights in a namespace of their own, and none elsewhere."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.namespace = f"{stage.namespace}-evil"
        self._made: list[tuple[Resource, str]] = []

    async def move_in(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self._stage.client.write(verbs.create(NAMESPACES, body), bytes)

    async def make(self, resource: Resource, body: Object) -> None:
        body["metadata"]["finalizers"] = [KEPT]
        request = verbs.create(resource, body, namespace=self.namespace)
        await self._stage.client.write(request, bytes)
        self._made.append((resource, body["metadata"]["name"]))

    async def move_out(self) -> None:
        for resource, name in self._made:
            body: Object = {"metadata": {"finalizers": None}}
            request = verbs.patch(resource, name, body, namespace=self.namespace)
            await self._stage.client.write(request, bytes)
        await self._stage.client.write(verbs.delete(NAMESPACES, self.namespace), bytes)


def forged(stored: Object, name: str) -> Object:
    """A revision that says all that a stored one says, and holds a privileged template."""
    spec = stored["data"]["spec"]["template"]["spec"]
    spec["hostPID"] = True
    spec["containers"][0] |= {"image": "evil:v1", "securityContext": {"privileged": True}}
    meta = stored["metadata"]
    kept = {key: meta[key] for key in ("labels", "annotations", "ownerReferences") if key in meta}
    return {
        **stored,
        "metadata": {"name": name, **kept},
        "revision": stored["revision"] + 1,
        # Sorted as every patch leaves them: a server compares data by its bytes.
        "data": json.loads(json.dumps(stored["data"], sort_keys=True)),
    }


def pod(name: str, node: str, owner: Object, **labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "agent", **labels},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "agent", "image": "evil:v1"}]},
    }


async def claim(stage: Stage, intruder: Intruder, node: str) -> None:
    """Make a revision, a pod and a pull pod that name the DaemonSet of the stage as owner."""
    [revision] = stage.history()
    stored = await stage.get(REVISIONS, revision.metadata.name)
    [owner] = stored["metadata"]["ownerReferences"]
    hash = revision.metadata.labels[REVISION_HASH]
    await intruder.make(REVISIONS, forged(stored, revision.metadata.name))
    await intruder.make(PODS, pod("claims", node, owner, **{REVISION_HASH: hash}))
    helper = {**owner, "controller": False, "blockOwnerDeletion": False}
    await intruder.make(PODS, pod("pulls", node, helper, **{PULL_POD_OWNER: owner["uid"]}))


@BOTH
async def test_objects_of_another_namespace_are_none_of_the_sets(play: Play, version: str) -> None:
    async with play(nodes=2) as stage:
        await stage.stop_controller()
        stage.start_controller(ControllerOptions(native=True, forgiving=False))  # of all namespaces
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 1})
        await stage.start(manifest, 2)
        intruder = Intruder(stage)
        await intruder.move_in()
        try:
            await claim(stage, intruder, "late")
            await stage.add_node("late")
            await stage.until_running("agent:v1", 3)
            first = stage.all_nodes()[0].name
            old = stage.pod_on(first)
            await stage.delete_pod(old)
            await stage.until(
                lambda: old.uid not in {each.uid for each in stage.all_pods()}, "it is gone"
            )
            await stage.until_running("agent:v1", 3)
            await stage.until_complete(manifest)
            await stage.stop_controller()
            stage.start_controller(ControllerOptions(native=True, forgiving=False))
            await stage.set_image(manifest, "agent:v2")
            await stage.until_running("agent:v2", 3)
            await stage.until_complete(manifest)
            assert {each.spec.containers[0].image for each in stage.all_pods()} == {"agent:v2"}
            assert [each.revision for each in stage.history()] == [1, 2]
            assert stage.condition(manifest, FAULTY) is None
        finally:
            await intruder.move_out()


@BOTH
async def test_a_forged_revision_of_the_target_is_named_and_no_pod_is_made_of_it(
    play: Play, version: str
) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 1})
        await stage.start(manifest, 2)
        before = {each.uid for each in stage.all_pods()}
        [revision] = stage.history()
        name = revision.metadata.name
        stored = await stage.get(REVISIONS, name)
        await stage.stop_controller()
        await stage.delete(REVISIONS, name)
        await stage.make(REVISIONS, forged(stored, name))
        stage.start_controller()

        def named() -> bool:
            condition = stage.condition(manifest, FAULTY)
            return (
                condition is not None and condition.status == "True" and name in condition.message
            )

        await stage.until(named, "the condition names the revision")
        first, second = (node.name for node in stage.all_nodes())
        old = stage.pod_on(first)
        await stage.delete_pod(old)
        await stage.until(
            lambda: old.uid not in {each.uid for each in stage.all_pods()}, "it is gone"
        )
        await stage.until_running("agent:v1", 2)
        assert stage.pod_on(second).uid in before  # nothing else was touched
        made = await stage.raw(stage.pod_on(first))
        assert "hostPID" not in made["spec"]
        await stage.set_image(manifest, "agent:v2")
        await stage.until_running("agent:v2", 2)
        await stage.until_complete(manifest)

        def well() -> bool:
            condition = stage.condition(manifest, FAULTY)
            return condition is not None and condition.status == "False"

        await stage.until(well, "no revision claims to be the target any more")
