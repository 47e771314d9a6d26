"""The controller as a cluster runs it: two restricted pods, a service account, a Lease."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from everynode.clock import SystemClock
from everynode.localkube import binaries
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.node import RealNode
from tests.node.conftest import IMAGES
from tests.support.helm import CHART, run_helm
from tests.support.own_image import OwnImage

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubernetes,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("node"),
]

HOME = ("-n", "everynode-system")
IMAGE = OwnImage.name
LEASE = ("lease", "everynode", *HOME)
AGENT = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "agent", "imagePullPolicy": "Never"}],
            },
        },
    },
}


@dataclass(frozen=True)
class Cluster:
    """A whole real cluster, and the two programs that people type."""

    kubeconfig: Path
    pod_logs: Path

    def kubectl(self, *arguments: str, given: str = "") -> str:
        program = str(binaries.find(binaries.CONTROL_PLANE) / "kubectl")
        return self._run([program, *arguments], given)

    def everynode(self, *arguments: str) -> list[str]:
        return self._run([sys.executable, "-m", "everynode", *arguments], "").splitlines()

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "-o", "json", *arguments))
        return found

    def roll_out(self, image: str) -> None:
        manifest = json.loads(json.dumps(AGENT))
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image
        self.kubectl("apply", "-f", "-", given=json.dumps(manifest))

    def until_complete(self) -> None:
        wait = ("wait", "--for=condition=Complete", "ads/agent", "--timeout=120s")
        try:
            self.kubectl(*wait)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._diagnosis()}") from None

    def _diagnosis(self) -> str:
        """Return what a person would look at: the set, its pods, the lease and the logs."""
        return self.logs() + "\n".join(
            self.kubectl(*arguments)
            for arguments in (
                ("get", "ads/agent", "-o", "yaml"),
                ("get", "pods", "-A", "-o", "wide"),
                ("get", *LEASE, "-o", "yaml"),
                (*HOME, "describe", "pods"),
            )
        )

    def logs(self, pod: str = "") -> str:
        """Return what the containers of a controller pod, or of all, have logged."""
        # From the node's disk, which has those of restarted containers too.
        files = sorted(self.pod_logs.glob(f"everynode-system_{pod}*/*/*.log"))
        return "\n".join(f"--- {file}\n{file.read_text()}" for file in files)

    def _run(self, command: list[str], given: str) -> str:
        ran = subprocess.run(
            command,
            input=given,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def cluster(possible: None) -> Iterator[Cluster]:
    plane = ControlPlane(ControlPlaneOptions(service_accounts=True))
    node = RealNode(plane, images=[*IMAGES, OwnImage()])
    with asyncio.Runner() as runner:
        runner.run(plane.start())
        try:
            runner.run(node.start())
            yield Cluster(plane.kubeconfig, node.pod_logs)
        finally:
            runner.run(node.stop())
            runner.run(plane.stop())


async def until(look: Callable[[], Any]) -> Any:
    """Wait until something is there, and return it."""
    while not (seen := look()):
        await SystemClock().sleep(0.2)
    return seen


def restarts(cluster: Cluster) -> dict[str, tuple[Any, str]]:
    """Return how each controller process that was restarted ended, and what it had logged.

    A container that the runtime failed to start (reason StartError) had no process.
    """
    return {
        pod["metadata"]["name"]: (
            status["lastState"],
            cluster.logs(pod["metadata"]["name"]),
        )
        for pod in cluster.get(*HOME, "pods")["items"]
        for status in pod["status"].get("containerStatuses", [])
        if status["restartCount"]
        and status["lastState"].get("terminated", {}).get("reason") != "StartError"
    }


async def test_it_rolls_out_hands_over_and_goes_without_touching_a_pod(cluster: Cluster) -> None:
    cluster.everynode("install", "--image", IMAGE)
    cluster.kubectl(*HOME, "rollout", "status", "deployment/everynode", "--timeout=60s")
    cluster.roll_out("example.test/agent:v1")
    cluster.until_complete()

    # Installing again is no change, and so restarts nothing.
    *objects, _ = cluster.everynode("install", "--image", IMAGE)
    assert {line.split()[-1] for line in objects} == {"unchanged"}

    # The leader is told to go while it has work to do: the other one takes over and does it.
    first = cluster.get(*LEASE)["spec"]["holderIdentity"]
    assert "Leading" in cluster.logs(first.partition("_")[0])
    cluster.kubectl(*HOME, "delete", "pod", first.partition("_")[0], "--wait=false")
    cluster.roll_out("example.test/agent:v2")
    cluster.until_complete()
    second = await until(lambda: cluster.get(*LEASE)["spec"].get("holderIdentity"))
    assert second.partition("_")[0] != first.partition("_")[0]
    assert restarts(cluster) == {}

    # Everything of ours goes; what ran runs on.
    [running] = await until(lambda: one_running(cluster))
    cluster.kubectl("delete", "ads", "--all", "--all-namespaces", "--cascade=orphan")
    printed = "\n".join(cluster.everynode("install", "--print", "--image", IMAGE))
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", given=printed)
    [left] = cluster.get("pods", "-l", "app=agent")["items"]
    assert left["metadata"]["uid"] == running["metadata"]["uid"]
    assert "ownerReferences" not in left["metadata"]
    assert "deletionTimestamp" not in left["metadata"]


def one_running(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the agent's only pod in a list, or nothing while an old one is still going."""
    pods: list[dict[str, Any]] = cluster.get("pods", "-l", "app=agent")["items"]
    return pods if len(pods) == 1 else []


def test_helm_waits_for_the_controller_and_finds_nothing_in_its_way(cluster: Cluster) -> None:
    def helm(*arguments: str) -> str:
        done = run_helm("helm", *arguments, "--kubeconfig", str(cluster.kubeconfig), *HOME)
        assert done.returncode == 0, done.stderr + cluster.kubectl(*HOME, "describe", "pods")
        return done.stdout

    image = ("--set", f"image.repository={IMAGE.partition(':')[0]}")
    wait = ("--wait", "--timeout", "90s")
    helm("install", "everynode", str(CHART), "--create-namespace", *image, *wait)
    assert cluster.get(*HOME, "deployment", "everynode")["status"]["readyReplicas"] == 2
    assert "Succeeded" in helm("test", "everynode", "--timeout", "60s")
    helm("uninstall", "everynode", *wait)
