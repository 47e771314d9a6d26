"""What only a real node can show: containers that run, restart, are resized and end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everynode.api.keys import LIFECYCLE_STATE
from everynode.api.objects import Pod
from everynode.kube.resources import ADVANCED, DAEMONSETS, PODS
from everynode.localkube.control_plane import ControlPlane
from tests.e2e.test_commands import Shell
from tests.node.conftest import Play
from tests.support.stage import Stage, daemonset

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubernetes,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("node"),
]

V1, V2 = "example.test/agent:v1", "example.test/agent:v2"
NODE = "real-node"
BLOCK = {"example.io/block-deleting": "true"}
IN_PLACE = {"rollingUpdateType": "InPlaceIfPossible"}


def container(name: str = "agent", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": V1, "imagePullPolicy": "Never", **more}


def on_node(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A DaemonSet whose images need no registry."""
    spec = {"containers": list(containers or [container()]), "terminationGracePeriodSeconds": 5}
    return daemonset(image=V1, template={"spec": spec}, **more)


def processes(pod: Pod) -> list[int]:
    """The processes that the kernel runs for a pod, by its cgroup."""
    wanted = (f"pod{pod.uid}", f"pod{pod.uid.replace('-', '_')}")
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if any(each in text for each in wanted):
            found.append(int(path.parent.name))
    return found


async def statuses(stage: Stage) -> dict[str, Any]:
    """The container statuses of the one pod, by name."""
    raw = await stage.raw(stage.pod_on(NODE))
    return {each["name"]: each for each in raw["status"]["containerStatuses"]}


@pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
async def test_a_pod_really_runs_is_updated_and_ends_with_its_daemonset(
    play: Play, version: str
) -> None:
    async with play() as stage:
        manifest = on_node(api_version=version)
        await stage.start(manifest, 1)
        first = stage.pod_on(NODE)
        assert processes(first)
        await stage.set_image(manifest, V2)
        await stage.until_running(V2, 1)
        await stage.until_complete(manifest)
        second = stage.pod_on(NODE)
        assert second.uid != first.uid
        assert not processes(first)
        assert processes(second)
        await stage.delete(DAEMONSETS if version == "apps/v1" else ADVANCED, "agent")
        # The real garbage collector looks for new custom kinds every thirty seconds.
        await stage.until(lambda: not stage.all_pods(), "the pod is gone", patience=90.0)
        assert not processes(second)


async def test_an_image_update_in_place_restarts_one_container_of_the_same_pod(
    play: Play,
) -> None:
    async with play() as stage:
        manifest = on_node(container(), container("beside"), rolling=IN_PLACE)
        await stage.start(manifest, 1)
        pod, before = stage.pod_on(NODE), await statuses(stage)
        await stage.set_image(manifest, V2)
        await stage.until_running(V2, 1)
        await stage.until_complete(manifest)
        after = await statuses(stage)
        assert stage.pod_on(NODE).uid == pod.uid
        assert after["agent"]["restartCount"] == 1
        assert after["agent"]["imageID"] != before["agent"]["imageID"]
        assert after["agent"]["containerID"] != before["agent"]["containerID"]
        assert after["beside"] == before["beside"]


@pytest.mark.parametrize(
    ("rolling", "action"), [(IN_PLACE, "in-place"), ({"maxUnavailable": 1}, "recreate")]
)
async def test_a_plan_takes_over_the_pod_of_a_real_kubelet(
    play: Play, plane: ControlPlane, rolling: dict[str, Any], action: str
) -> None:
    async with play() as stage:
        manifest = on_node(rolling=rolling)
        await stage.start(manifest, 1)
        pod = stage.pod_on(NODE)
        here = Shell(str(plane.kubeconfig), stage.namespace)
        asked = ("everynode", "plan", "agent", "--set-image", f"agent={V2}", "-o", "json")
        code, printed = await here.run(*asked)
        found = json.loads(printed)
        assert (code, found["forecast"]["ending"]) == (0, "complete")
        [item] = found["items"]
        assert (item["node"], item["action"], item["stuck"]) == (NODE, action, False)
        assert found["durations"]["pull"]["source"] == "its one pod"
        assert found["dryRun"] == {"node": NODE, "refusal": "", "unknown": ""}
        await stage.set_image(manifest, V2)
        await stage.until_running(V2, 1)
        await stage.until_complete(manifest)
        assert (stage.pod_on(NODE).uid == pod.uid) == (action == "in-place")


async def test_a_resize_in_place_completes_without_a_restart(play: Play) -> None:
    async with play() as stage:
        small = {"cpu": "100m", "memory": "64Mi"}
        big = {"cpu": "200m", "memory": "96Mi"}
        amounts = {"requests": small, "limits": small}
        manifest = on_node(container(resources=amounts), rolling=IN_PLACE)
        await stage.start(manifest, 1)
        pod = stage.pod_on(NODE)
        resized = container(resources={"requests": big, "limits": big})
        await stage.change_template(manifest, containers=[resized])
        await stage.until(lambda: stage.pod_on(NODE).hash != pod.hash, "the pod is updated")
        await stage.until_complete(manifest)
        after = await statuses(stage)
        assert stage.pod_on(NODE).uid == pod.uid
        assert after["agent"]["restartCount"] == 0
        assert after["agent"]["resources"]["limits"] == big


async def test_a_hook_before_deletion_holds_the_running_pod(play: Play) -> None:
    async with play() as stage:
        manifest = on_node(lifecycle={"preDelete": {"labelsHandler": BLOCK}})
        manifest["spec"]["template"]["metadata"]["labels"].update(BLOCK)
        await stage.start(manifest, 1)
        pod = stage.pod_on(NODE)
        await stage.set_image(manifest, V2)
        await stage.until(
            lambda: stage.pod_on(NODE).metadata.labels.get(LIFECYCLE_STATE) == "PreparingDelete",
            "the pod is announced",
        )
        await stage.settled(manifest)
        assert stage.pod_on(NODE).uid == pod.uid
        assert processes(pod)
        await stage.patch(PODS, pod.name, {"metadata": {"labels": dict.fromkeys(BLOCK)}})
        await stage.until_running(V2, 1)
        assert not processes(pod)


async def test_a_surge_runs_the_new_pod_before_the_old_one_ends(play: Play) -> None:
    async with play() as stage:
        manifest = on_node(rolling={"maxSurge": 1, "maxUnavailable": 0})
        await stage.start(manifest, 1)
        seen = stage.observe(1)
        await stage.set_image(manifest, V2)
        await stage.until_running(V2, 1)
        await stage.until(lambda: len(stage.all_pods()) == 1, "the old pod is gone")
        assert seen.most_together == 2
        assert seen.most_down == 0


async def test_a_failing_container_is_seen_and_does_not_spread(play: Play) -> None:
    async with play() as stage:
        manifest = on_node(rolling={"maxUnavailable": 1})
        await stage.start(manifest, 1)
        broken = container(command=["/bin/false"])
        await stage.change_template(manifest, containers=[broken])
        await stage.until(
            lambda: stage.status(manifest).unavailable == 1 and len(stage.history()) == 2,
            "the status names the node that is down",
        )
        await stage.change_template(manifest, containers=[container()])
        await stage.until_running(V1, 1)
        await stage.until_complete(manifest)
