"""Releases of the chart on real Kubernetes, with Helm 3 and 4: no pod of a DaemonSet is touched."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import yaml

from everynode.kube.auth.kubeconfig import load_cluster_config
from everynode.kube.http.transport import HttpTransport
from everynode.localkube.control_plane import ControlPlane
from tests.support.gitops import tool
from tests.support.helm import CHART, HELMS, NAMESPACE, run_helm
from tests.support.install_cluster import CRDS, KRUISES_CRD, OUR_CRD
from tests.support.kubernetes import running
from tests.support.real_server import Object, RealApiServer
from tests.support.stage import Stage, clock, daemonset

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("helm"),
]
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/everynode"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/everynode"
MONITORS = f"/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}"
# Helm 4 applies on the server's side; Helm 3 has no such flag.
TAKE_OVER = {
    "helm": ("--take-ownership", "--force-conflicts"),
    "helm3": ("--take-ownership",),
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of its own, since releases are for a whole cluster."""
    with running() as plane:
        yield plane


@pytest.fixture
def server(plane: ControlPlane) -> Iterator[RealApiServer]:
    """The API server; what was installed, and the CRD, are gone afterwards."""
    server = RealApiServer(plane)
    yield server
    helm(plane, "helm", "uninstall", "everynode", "--ignore-not-found")
    server.ask("DELETE", OUR_CRD)
    until_answered(server, OUR_CRD, 404)


def until_answered(server: RealApiServer, path: str, code: int) -> None:
    """Wait until a definition is served, or is gone with all its objects."""
    while server.ask("GET", path).code != code:
        time.sleep(0.1)


def helm(plane: ControlPlane, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    cluster = ("--kubeconfig", str(plane.kubeconfig), "--namespace", NAMESPACE)
    return run_helm(program, *arguments, *cluster)


def install(
    plane: ControlPlane, program: str, *more: str, values: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    given = [word for value in values for word in ("--set", value)]
    line = ("upgrade", "--install", "everynode", str(CHART), "--create-namespace")
    return helm(plane, program, *line, *given, *more)


def assert_nothing_installed(server: RealApiServer) -> None:
    assert server.ask("GET", ROLE).code == 404
    assert server.ask("GET", DEPLOYMENT).code == 404


@asynccontextmanager
async def rolled_out(plane: ControlPlane) -> AsyncIterator[tuple[Stage, Object]]:
    """Play three nodes and the controller, and roll a DaemonSet out to them."""
    now = clock()
    transport = HttpTransport(load_cluster_config(now, kubeconfig=str(plane.kubeconfig)), now)
    stage = Stage(transport, now, namespace="agents", real=True)
    manifest = daemonset()
    try:
        async with stage.playing(nodes=3):
            await stage.create(manifest)
            await stage.until_complete(manifest)
            yield stage, manifest
    finally:
        await transport.close()


def agents(server: RealApiServer) -> dict[str, str]:
    """Return the uids of the DaemonSet's pods by name."""
    pods = server.ask("GET", "/api/v1/namespaces/agents/pods").body["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def uid_of_the_definition(server: RealApiServer) -> str:
    uid: str = server.ask("GET", OUR_CRD).body["metadata"]["uid"]
    return uid


async def test_a_release_comes_changes_goes_back_and_ends_and_every_agent_runs_on(
    plane: ControlPlane, server: RealApiServer
) -> None:
    assert install(plane, "helm").returncode == 0

    async def do(program: str, *arguments: str) -> None:
        done = await asyncio.to_thread(helm, plane, program, *arguments)
        assert done.returncode == 0, done.stderr
        assert (agents(server), uid_of_the_definition(server)) == before

    def replicas() -> int:
        number: int = server.ask("GET", DEPLOYMENT).body["spec"]["replicas"]
        return number

    async with rolled_out(plane) as (stage, manifest):
        before = (agents(server), uid_of_the_definition(server))
        assert len(before[0]) == 3
        wait = ("--wait", "--timeout", "2m")
        chart = ("everynode", str(CHART))
        for program in HELMS:
            # With Helm 3 it is a new release, on the CRD that the other one left.
            await do(program, "upgrade", "--install", *chart, *wait)
            status = server.ask("GET", DEPLOYMENT).body["status"]
            assert status["availableReplicas"] == 2  # Helm waited
            await do(program, "upgrade", *chart, "--set", "replicaCount=3,native=true", *wait)
            assert replicas() == 3
            await do(program, "rollback", "everynode", *wait)
            assert replicas() == 2
            await do(program, "uninstall", "everynode", *wait)
            assert_nothing_installed(server)
        # The DaemonSet is still what it was, and is still served.
        await stage.set_image(manifest, "agent:v2")
        await stage.until_complete(manifest)


@pytest.mark.parametrize("program", HELMS)
def test_a_definition_of_kruise_is_left_alone_until_it_is_taken_over(
    plane: ControlPlane, server: RealApiServer, program: str
) -> None:
    assert server.ask("POST", CRDS, KRUISES_CRD).code == 201
    for values in ((), ("crds.enabled=false",)):
        refused = install(plane, program, values=values)
        assert refused.returncode != 0
        assert "daemonsets.apps.kruise.io belongs to OpenKruise" in refused.stderr
        assert "(Helm release kruise)" in refused.stderr
        assert "everynode install --namespace everynode-system --adopt-crd" in refused.stderr
        assert_nothing_installed(server)
    line = [sys.executable, "-m", "everynode", "install", "--adopt-crd"]
    adopted = subprocess.run(
        [*line, "--kubeconfig", str(plane.kubeconfig)], capture_output=True, text=True
    )
    assert adopted.returncode == 0, adopted.stderr
    refused = install(plane, program)
    assert refused.returncode != 0
    assert "invalid ownership metadata" in refused.stderr
    taken = install(plane, program, *TAKE_OVER[program])
    assert taken.returncode == 0, taken.stderr
    owner = server.ask("GET", OUR_CRD).body["metadata"]["annotations"]
    assert owner["meta.helm.sh/release-name"] == "everynode"
    assert owner["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize("program", HELMS)
def test_what_cannot_be_installed_is_one_message_and_changes_nothing(
    plane: ControlPlane, server: RealApiServer, program: str
) -> None:
    cases: dict[str, tuple[str, ...]] = {
        "The cluster has no CRD daemonsets.apps.kruise.io": ("--set", "crds.enabled=false"),
        'no matches for kind "ServiceMonitor"': ("--set", "metrics.serviceMonitor.enabled=true"),
        "is forbidden": ("--kube-as-user", "visitor"),
        "not allowed": ("--set", "replicas=3"),
    }
    for message, arguments in cases.items():
        refused = install(plane, program, *arguments)
        assert refused.returncode != 0, message
        assert message in refused.stderr
        assert_nothing_installed(server)


@pytest.mark.parametrize("program", HELMS)
def test_prometheus_operator_knows_every_field(
    plane: ControlPlane, server: RealApiServer, program: str
) -> None:
    definitions = tool("monitors").read_text(encoding="utf-8")
    for definition in filter(None, yaml.safe_load_all(definitions)):
        assert server.ask("POST", CRDS, definition).code in (201, 409)
        path = f"{MONITORS}/{definition['spec']['names']['plural']}"
        until_answered(server, path, 200)
    kinds = ("serviceMonitor", "podMonitor", "prometheusRule", "dashboard")
    values = tuple(f"metrics.{kind}.enabled=true" for kind in kinds)
    more = ("metrics.podMonitor.interval=30s", "metrics.serviceMonitor.endpoint.scrapeTimeout=5s")
    done = install(plane, program, values=values + more)
    assert done.returncode == 0, done.stderr
    rendered = helm(plane, program, "get", "manifest", "everynode").stdout
    for each in yaml.safe_load_all(rendered):
        if each["apiVersion"] == "monitoring.coreos.com/v1":
            stored = server.ask("GET", f"{MONITORS}/{each['kind'].lower()}s/everynode").body
            assert json.dumps(stored["spec"], sort_keys=True) == json.dumps(
                each["spec"], sort_keys=True
            )
