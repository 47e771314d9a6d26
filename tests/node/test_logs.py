"""`everynode logs` and `everynode exec` reach the pod of a real kubelet, as kubectl does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everynode.localkube import binaries
from everynode.localkube.control_plane import ControlPlane
from tests.node.conftest import Play
from tests.support.processes import listening
from tests.support.stage import daemonset

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubernetes,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("node"),
]

NODE = "real-node"
ON_NODE = ("--node", NODE)
IMAGE = "example.test/agent:v1"
PRINTS = "trap 'exit 0' TERM; echo one; echo two; while :; do sleep 1 & wait; done"


class Shell:
    """The two programs that people type, in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        folder = binaries.find(binaries.CONTROL_PLANE)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        self._env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "PATH": path}
        self._namespace = namespace

    def kubectl(self, *arguments: str) -> tuple[int, str]:
        return self._run("kubectl", *arguments)

    def everynode(self, verb: str, *arguments: str) -> tuple[int, str]:
        return self._run(sys.executable, "-m", "everynode", verb, *arguments)

    def _run(self, *words: str) -> tuple[int, str]:
        at = words.index("everynode") + 2 if "everynode" in words else 1
        command = [*words[:at], "-n", self._namespace, *words[at:]]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=self._env
        )
        return ran.returncode, ran.stdout or ran.stderr


@pytest.mark.parametrize(
    ("version", "short"), [("apps/v1", "ds"), ("apps.kruise.io/v1beta1", "ads")]
)
async def test_logs_and_exec_are_those_of_the_pod_on_the_node(
    play: Play, plane: ControlPlane, version: str, short: str
) -> None:
    async with play() as stage:
        container = {
            "name": "agent",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", PRINTS],
        }
        spec = {"containers": [container], "terminationGracePeriodSeconds": 5}
        manifest = daemonset(image=IMAGE, template={"spec": spec}, api_version=version)
        await stage.start(manifest, 1)
        pod = stage.pod_on(NODE).name
        shell = Shell(plane, stage.namespace)

        assert shell.kubectl("logs", pod) == (0, "one\ntwo\n")
        assert shell.everynode("logs", "agent", *ON_NODE) == (0, "one\ntwo\n")
        assert shell.everynode("logs", f"{short}/agent", *ON_NODE, "--tail=1") == (0, "two\n")
        for name in ("agent", f"{short}/agent"):
            hostname = shell.everynode("exec", name, *ON_NODE, "--", "cat", "/etc/hostname")
            assert hostname == (0, f"{pod}\n")
        code, said = shell.everynode("exec", "agent", *ON_NODE, "--", "sh", "-c", "exit 7")
        assert code == 7, said


def kubelet_of(plane: ControlPlane) -> int:
    """The process id of the kubelet that has joined this control plane."""
    [found] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"--kubeconfig={plane.kubeconfig}".encode() in path.read_bytes().split(b"\0")
        and path.read_bytes().split(b"\0")[0].endswith(b"/kubelet")
    ]
    return found


def test_the_kubelet_listens_on_loopback_alone(plane: ControlPlane) -> None:
    assert {address.host for address in listening(kubelet_of(plane))} == {"127.0.0.1"}
