"""`everynode plan` on the embedded cluster and on real Kubernetes: right, and without a write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, NAMESPACES, NODES, PODS, REVISIONS, Resource
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.e2e.conftest import Play, play_real
from tests.e2e.test_commands import (
    BINDINGS,
    BOTH,
    ROLES,
    Shell,
    binding,
    impersonating,
    role,
    shell,
    short,
)
from tests.support.kubernetes import running
from tests.support.stage import Stage, daemonset

Object = dict[str, Any]
KUBERNETES = pytest.mark.parametrize(
    "play", [pytest.param("kubernetes", marks=pytest.mark.kubernetes)], indirect=True
)
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(
    RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
READS = {"get", "list", "watch"}


async def plan(here: Shell, *words: str) -> Object:
    code, printed = await here.run("everynode", "plan", *words, "-o", "json")
    assert code == 0
    document: Object = json.loads(printed)
    return document


@BOTH
async def test_a_plan_names_the_nodes_in_the_order_of_the_update(
    play: Play, tmp_path: Path, version: str
) -> None:
    async with play(nodes=5) as stage:
        # One at a time: of two requests that are sent together either may be served first.
        manifest = daemonset(api_version=version, rolling={"maxUnavailable": 1})
        await stage.start(manifest, 5)
        here = await shell(stage, tmp_path)
        await stage.taint_node("node-0002", {"key": "gpu", "effect": "NoSchedule"})
        changed = ("agent", "--set-image", "agent=agent:v2")
        found = await plan(here, *changed)
        assert found["exists"]
        assert found["forecast"]["ending"] == "complete"
        assert found["actions"] == {"not-eligible": 1, "recreate": 4}
        assert found["order"] == [f"node-000{number}" for number in (5, 4, 3, 1)]
        assert found["dryRun"] == {"node": "node-0005", "refusal": "", "unknown": ""}
        seen = stage.observe(5)
        await stage.set_image(manifest, "agent:v2")
        await stage.until_complete(manifest)
        assert seen.moved == found["order"]
        code, text = await here.run("everynode", "plan", "agent")
        assert code == 0
        assert "Nothing changes" in text
        assert f"{short(version)} in {stage.namespace} on 5 nodes: a plan" in text


async def test_a_manifest_is_planned_as_apply_would_change_it(play: Play, tmp_path: Path) -> None:
    async with play(nodes=3) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 1, "partition": 2})
        file = tmp_path / "agent.yaml"
        file.write_text(yaml.safe_dump(manifest))
        here = await shell(stage, tmp_path)
        found = await plan(here, "-f", str(file))
        assert not found["exists"]
        assert found["actions"] == {"create": 3}
        await stage.start(manifest, 3)
        file.write_text(yaml.safe_dump(daemonset(image="agent:v2", rolling={"partition": 1})))
        found = await plan(here, "-f", str(file))
        assert found["actions"] == {"held": 1, "recreate": 2}
        assert [each["path"] for each in found["changes"]] == [
            "template.spec.containers[agent].image",
            "updateStrategy.rollingUpdate.partition",
        ]


@KUBERNETES
async def test_a_pod_that_a_policy_refuses_is_found_before_the_change(
    play: Play, tmp_path: Path
) -> None:
    async with play(nodes=2) as stage:
        manifest = daemonset()
        await stage.start(manifest, 2)
        enforce = {"pod-security.kubernetes.io/enforce": "baseline"}
        body = {"metadata": {"labels": enforce}}
        await stage.client.write(verbs.patch(NAMESPACES, stage.namespace, body), bytes)
        file = tmp_path / "agent.yaml"
        host = daemonset(template={"spec": {"hostNetwork": True}})
        file.write_text(yaml.safe_dump(host))
        here = await shell(stage, tmp_path)
        found = await plan(here, "-f", str(file))
        assert "violates PodSecurity" in found["dryRun"]["refusal"]
        assert found["warnings"][0]["about"] == "policy"
        code, text = await here.run("everynode", "plan", "-f", str(file))
        assert code == 0
        assert "Does not begin: the API server refuses a pod of the new version" in text


@KUBERNETES
async def test_a_reader_without_the_nodes_is_told_which_right_is_missing(
    play: Play, tmp_path: Path
) -> None:
    async with play(nodes=2) as stage:
        await stage.start(daemonset(), 2)
        assert stage.serve is not None
        here = Shell(
            impersonating("reader", await stage.serve(tmp_path), tmp_path), stage.namespace
        )
        await stage.make(ROLES, role(stage.namespace))
        await stage.make(BINDINGS, binding(stage.namespace))
        code, text = await here.run("everynode", "plan", "agent", "--set-image", "agent=agent:v2")
        assert code == 0
        assert "template.spec.containers[agent].image: agent:v1 → agent:v2" in text
        assert "No forecast: you lack the permission to list nodes." in text
        await allow_nodes(stage)
        found = await plan(here, "agent", "--set-image", "agent=agent:v2")
        assert found["order"] == ["node-0002", "node-0001"]
        assert found["dryRun"]["unknown"] == (
            f"you lack the permission to create pods in namespace {stage.namespace}"
        )


async def allow_nodes(stage: Stage) -> None:
    """Let the reader list nodes, and nothing else outside of its namespace."""
    name = f"nodes-{stage.namespace}"
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    body: Object = {"metadata": {"name": name}, "rules": rules}
    await stage.client.write(verbs.create(CLUSTER_ROLES, body), bytes)
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "reader"}],
    }
    await stage.client.write(verbs.create(CLUSTER_BINDINGS, body), bytes)


# --- No writes -----------------------------------------------------------------------------------


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane whose API server logs every request."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY))
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={tmp_path / 'audit.log'}"]
    options = ControlPlaneOptions(extra_flags={"kube-apiserver": flags})
    with running(options) as plane:
        yield plane


def requests_of(user: str, folder: Path) -> list[Object]:
    """The requests that the API server has logged for an impersonated user."""
    lines = (folder / "audit.log").read_text().splitlines()
    logged = [json.loads(line) for line in lines]
    return [each for each in logged if each.get("impersonatedUser", {}).get("username") == user]


async def versions(stage: Stage) -> dict[str, str]:
    """The resource version of everything that a plan reads, by uid."""
    found = [
        each["metadata"]
        for resource in (ADVANCED, PODS, REVISIONS, NODES)
        for each in await stage.client.read_all(resource, json.loads)
    ]
    return {each["uid"]: each["resourceVersion"] for each in found}


@pytest.mark.kubernetes
async def test_the_one_request_that_could_write_is_a_dry_run(
    audited: ControlPlane, tmp_path: Path
) -> None:
    async with play_real(audited, nodes=3) as stage:
        manifest = daemonset(rolling={"maxUnavailable": 2})
        await stage.start(manifest, 3)
        await stage.settled(manifest)
        stored = await versions(stage)
        allowed = role(stage.namespace)
        rules: Any = allowed["rules"]
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]})
        await stage.make(ROLES, allowed)
        await stage.make(BINDINGS, binding(stage.namespace))
        await allow_nodes(stage)
        here = Shell(impersonating("reader", str(audited.kubeconfig), tmp_path), stage.namespace)
        found = await plan(here, "agent", "--set-image", "agent=agent:v2")
        assert found["dryRun"] == {"node": "node-0003", "refusal": "", "unknown": ""}
        logged = requests_of("reader", tmp_path)
        writes = [each for each in logged if each["verb"] not in READS]
        assert [each["verb"] for each in writes] == ["create"]
        assert all("dryRun=All" in each["requestURI"] for each in writes)
        assert {each["objectRef"]["resource"] for each in logged if "objectRef" in each} == {
            "controllerrevisions",
            "daemonsets",
            "nodes",
            "pods",
        }
        assert await versions(stage) == stored
        code, _ = await here.run("everynode", "plan", "agent", "--no-dry-run")
        assert code == 0
        assert len([e for e in requests_of("reader", tmp_path) if e["verb"] not in READS]) == 1
