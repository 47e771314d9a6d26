"""Commands that show a rollout, on the embedded cluster and on real Kubernetes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from everynode.kube.resources import Resource
from tests.e2e.conftest import Play
from tests.support.stage import Stage, daemonset

BOTH = pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
DRY = ("--dry-run=server",)
SCRIPTS = Path(sys.executable).parent


class Shell:
    """Runs programs against the cluster of a stage, in its namespace."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig, "PATH": path}
        self._namespace = namespace

    async def run(self, *words: str) -> tuple[int, str]:
        """Return exit code and output."""
        code, output, _ = await self.type(*words)
        return code, output

    async def type(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, output and what is said on stderr."""
        process = await asyncio.create_subprocess_exec(
            *words,
            "-n",
            self._namespace,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()


async def shell(stage: Stage, folder: Path) -> Shell:
    assert stage.serve is not None
    return Shell(await stage.serve(folder), stage.namespace)


@BOTH
async def test_a_bad_rollout_is_seen_with_every_command(
    play: Play, tmp_path: Path, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        here = await shell(stage, tmp_path)
        assert await here.run("everynode", "status", "agent", "--watch") == (
            0,
            f"{short(version)} complete: 3 of 3 updated, 3 available\n",
        )
        await stage.set_image(manifest, "agent:never-ready")
        await stage.until(lambda: reason(stage, manifest) == "NotReady", "it does not become ready")
        code, picture = await here.run("everynode", "status", "agent")
        assert code == 0
        assert "1 of 1 down (maxUnavailable: 1)" in picture
        code, listed = await here.run("kubectl", "everynode", "get", "-o", "json")
        [item] = json.loads(listed)["items"]
        assert (code, item["state"], item["queued"], item["revision"]) == (0, "waiting", 2, 2)
        assert item["waitingNodes"] == {"NotReady": ["node-0003"]}
        asked = ("everynode", "nodes", "agent", "--reason", "NotReady", "-o", "name")
        assert await here.run(*asked) == (
            0,
            "node/node-0003\n",
        )
        code, why = await here.run("everynode", "why", "node-0003", "agent")
        assert code == 0
        assert f"everynode history {short(version)}" in why
        code, changed = await here.run("everynode", "history", "agent", "--diff", "1", "2")
        assert "+  - image: agent:never-ready" in changed


@BOTH
async def test_a_rollout_is_changed_with_every_command(
    play: Play, tmp_path: Path, version: str
) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(api_version=version)
        await stage.start(manifest, 3)
        here = await shell(stage, tmp_path)
        name = f"daemonset.{'apps' if version == 'apps/v1' else 'apps.kruise.io'}/agent"
        changed = "image updated: agent agent:v1 → agent:v2"
        tried = await here.run("everynode", "set", "image", "agent", "agent=agent:v2", *DRY)
        assert tried == (0, f"{name} {changed} (server dry run)\n")
        done = await here.run("everynode", "set", "image", "agent", "agent=agent:v2")
        assert done == (0, f"{name} {changed}\n")
        await stage.until_running("agent:v2", 3)
        await stage.until_complete(manifest)
        before = {pod.uid for pod in stage.all_pods()}
        assert await here.run("everynode", "restart", "agent") == (0, f"{name} restarted\n")
        await stage.until(
            lambda: not before & {pod.uid for pod in stage.all_pods()}, "every pod is replaced"
        )
        await stage.until_complete(manifest)
        if version != "apps/v1":
            await hold_back(here, stage, manifest)
        back = await here.run("everynode", "undo", "agent", "--to-revision", "1")
        assert back == (0, f"{name} rolled back to revision 1\n")
        await stage.until_running("agent:v1", 3)
        await stage.until_complete(manifest)
        code, listed = await here.run("everynode", "history", "agent", "-o", "json")
        causes = [item["changeCause"] for item in json.loads(listed)["items"]]
        assert code == 0
        assert f"everynode set image {short(version)} agent=agent:v2" in causes
        code, found = await here.run("everynode", "doctor", "-o", "json")
        assert code in (0, 1)
        assert "items" in json.loads(found)


async def hold_back(here: Shell, stage: Stage, manifest: dict[str, object]) -> None:
    """Pause, set a partition and resume; nodes move when nothing holds them."""
    name = "daemonset.apps.kruise.io/agent"
    assert await here.run("everynode", "pause", "agent") == (0, f"{name} paused\n")
    code, _ = await here.run("everynode", "set", "image", "agent", "agent=agent:v3")
    assert code == 0
    await stage.until(lambda: reason(stage, manifest) == "Paused", "it is paused")
    moved = await here.run("everynode", "partition", "agent", "2")
    assert moved == (0, f"{name} partition 0 → 2\n")
    assert await here.run("everynode", "resume", "agent") == (0, f"{name} resumed\n")
    await stage.until(lambda: reason(stage, manifest) == "Held", "two nodes are held")
    assert len(stage.running("agent:v3")) == 1
    assert await here.run("everynode", "partition", "agent", "0") == (
        0,
        f"{name} partition 2 → 0\n",
    )
    await stage.until_running("agent:v3", 3)
    await stage.until_complete(manifest)


@pytest.mark.parametrize(
    "play", [pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True
)
async def test_a_real_api_server_connects_to_no_address_of_a_simulated_node(
    play: Play, tmp_path: Path
) -> None:
    async with play(nodes=1) as stage:
        await stage.start(daemonset(), 1)
        here = await shell(stage, tmp_path)
        for words in (("logs", "agent"), ("exec", "agent", "ls")):
            code, output, said = await here.type("everynode", *words, "--node", "node-0001")
            assert (code, output) == (1, "")
            assert "no preferred addresses found" in said


@pytest.mark.parametrize(
    "play", [pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True
)
async def test_without_nodes_and_pods_no_node_is_said_to_be_absent(
    play: Play, tmp_path: Path
) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(), 2)
        assert stage.serve is not None
        await stage.make(ROLES, role(stage.namespace, DAEMONSETS))
        await stage.make(BINDINGS, binding(stage.namespace))
        here = Shell(
            impersonating("reader", await stage.serve(tmp_path), tmp_path), stage.namespace
        )
        code, picture = await here.run("everynode", "status", "agent")
        assert code == 0
        assert "2 of 2 nodes updated, 2 available" in picture
        for words in (("nodes", "agent"), ("why", "node-0001"), ("why", "node-0001", "agent")):
            code, output, said = await here.type("everynode", *words)
            assert (code, output) == (1, "")
            assert said.startswith("everynode: you lack the permission to list nodes, list pods in")
            assert said.count("\n") == 1


@pytest.mark.parametrize(
    "play", [pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True
)
async def test_a_reader_with_few_rights_is_told_which_are_missing(
    play: Play, tmp_path: Path
) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(), 2)
        assert stage.serve is not None
        reader = impersonating("reader", await stage.serve(tmp_path), tmp_path)
        here = Shell(reader, stage.namespace)
        assert await here.run("everynode", "status", "agent") == (1, "")
        await stage.make(ROLES, role(stage.namespace))
        await stage.make(BINDINGS, binding(stage.namespace))
        code, picture = await here.run("everynode", "status", "agent")
        assert code == 0
        assert "2 of 2 nodes updated, 2 available" in picture
        assert "you lack the permission to list nodes;" in picture
        code, listed = await here.run("everynode", "nodes", "agent", "-o", "name")
        assert (code, listed) == (0, "node/node-0001\nnode/node-0002\n")


def impersonating(user: str, kubeconfig: str, folder: Path) -> str:
    """Write a kubeconfig with which one has the rights of another user."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    config["users"][0]["user"]["as"] = user
    path = folder / user
    path.write_text(yaml.safe_dump(config))
    return str(path)


ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


DAEMONSETS = (("apps", "daemonsets"), ("apps.kruise.io", "daemonsets"))
READ = (("", "pods"), ("apps", "controllerrevisions"), *DAEMONSETS)


def role(namespace: str, kinds: Iterable[tuple[str, str]] = READ) -> dict[str, object]:
    """Pods, revisions and DaemonSets may be read, in one namespace; nodes may not."""
    rules = [
        {"apiGroups": [group], "resources": [kind], "verbs": ["get", "list"]}
        for group, kind in kinds
    ]
    return {"metadata": {"name": "reader", "namespace": namespace}, "rules": rules}


def binding(namespace: str) -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": "reader", "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }


def short(version: str) -> str:
    return "ds/agent" if version == "apps/v1" else "ads/agent"


def reason(stage: Stage, manifest: dict[str, object]) -> str:
    condition = stage.condition(manifest, "Progressing")
    return condition.reason if condition is not None else ""
