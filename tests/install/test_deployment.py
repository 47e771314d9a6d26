from __future__ import annotations

from typing import Any

import click
import pytest

from everynode.cli.main import entry
from everynode.controller.health_server import parse_address
from everynode.install import InstallOptions, install_objects
from everynode.install.deployment import controller_objects


def deployment(**settings: Any) -> dict[str, Any]:
    found = controller_objects(
        "everynode-system", **{"image": "everynode:1", "native": False, **settings}
    )
    return next(each for each in found if each["kind"] == "Deployment")


def pod(**settings: Any) -> dict[str, Any]:
    spec: dict[str, Any] = deployment(**settings)["spec"]["template"]["spec"]
    return spec


def test_two_replicas_run_and_one_may_be_away() -> None:
    found = {each["kind"]: each for each in controller_objects("x", image="i", native=False)}
    assert found["Deployment"]["spec"]["replicas"] == 2
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_the_image_is_the_one_asked_for() -> None:
    assert pod(image="here/everynode@sha256:1")["containers"][0]["image"] == (
        "here/everynode@sha256:1"
    )


def test_the_user_id_is_above_those_of_a_node() -> None:
    assert pod()["securityContext"]["runAsUser"] > 10_000


def test_native_is_passed_on() -> None:
    assert "--native" in pod(native=True)["containers"][0]["args"]
    assert "--native" not in pod()["containers"][0]["args"]


def test_critical_pods_are_allowed_where_a_quota_is_needed_for_them() -> None:
    quota = next(
        each
        for each in controller_objects("x", image="i", native=False)
        if each["kind"] == "ResourceQuota"
    )
    scopes = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert [scope["values"] for scope in scopes] == [[pod()["priorityClassName"]]]


def test_the_probes_ask_the_port_that_answers() -> None:
    container = pod()["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--health-address=:{ports['health']}" in container["args"]
    assert f"--metrics-address=:{ports['metrics']}" in container["args"]
    probes = [container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")]
    asked = [(probe["httpGet"]["path"], probe["httpGet"]["port"]) for probe in probes]
    assert asked == [("/livez", "health"), ("/livez", "health"), ("/readyz", "health")]


@pytest.mark.parametrize("native", [True, False])
def test_the_command_line_understands_what_the_container_is_started_with(native: bool) -> None:
    name, *arguments = pod(native=native)["containers"][0]["args"]
    command = entry.get_command(click.Context(entry), name)
    assert command is not None
    parsed = command.make_context(name, arguments).params
    assert parsed["native"] is native
    assert parse_address(parsed["health_address"], flag="") == ("", 8081)


def test_selectors_match_the_pods() -> None:
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    selectors = [
        deployment()["spec"]["selector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in pod()["topologySpreadConstraints"]),
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_a_built_in_namespace_is_not_ours_to_install(namespace: str) -> None:
    kinds = [
        each["kind"] for each in install_objects(InstallOptions(namespace=namespace, image="i"))
    ]
    assert "Namespace" not in kinds


def test_without_an_image_nothing_runs() -> None:
    kinds = [each["kind"] for each in install_objects(InstallOptions())]
    assert kinds[:2] == ["CustomResourceDefinition", "Namespace"]
    assert "Deployment" not in kinds
