"""Lint: every mistake is named with its field, and every risk with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.validation.lint import Severity, lint_daemonset

Object = dict[str, Any]

CONTAINER: Object = {"name": "a", "image": "a:1", "readinessProbe": {"exec": {"command": ["x"]}}}


def manifest(
    *, version: str = "apps.kruise.io/v1beta1", rolling: Object | None = None, **spec: Any
) -> Object:
    pod = spec.pop("pod", {})
    strategy: Object = {"type": "RollingUpdate"}
    if rolling is not None:
        strategy["rollingUpdate"] = rolling
    return {
        "apiVersion": version,
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "minReadySeconds": 10,
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": strategy,
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [CONTAINER], **pod},
            },
            **spec,
        },
    }


def found(value: Object) -> list[tuple[Severity, str]]:
    return [(each.severity, each.path) for each in lint_daemonset(value)]


@pytest.mark.parametrize(
    "version", ["apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1", "apps/v1"]
)
def test_a_careful_manifest_has_no_finding(version: str) -> None:
    assert lint_daemonset(manifest(version=version)) == []


@pytest.mark.parametrize(
    ("wrong", "path", "suggestion"),
    [
        (
            {"rolling": {"maxUnavailible": 1}},
            "spec.updateStrategy.rollingUpdate.maxUnavailible",
            "maxUnavailable",
        ),
        ({"pod": {"hostNetwrok": True}}, "spec.template.spec.hostNetwrok", "hostNetwork"),
        (
            {"pod": {"containers": [{**CONTAINER, "evn": []}]}},
            "spec.template.spec.containers[0].evn",
            "env",
        ),
        ({"something": 1}, "spec.something", ""),
    ],
)
def test_an_unknown_field_is_an_error_with_what_was_perhaps_meant(
    wrong: Object, path: str, suggestion: str
) -> None:
    [finding] = lint_daemonset(manifest(**wrong))
    assert (finding.severity, finding.path) == (Severity.ERROR, path)
    assert finding.message.endswith(f"did you mean {suggestion}?") == bool(suggestion)


def test_what_an_api_server_refuses_is_an_error() -> None:
    assert found(manifest(rolling={"maxUnavailable": "200%"})) == [
        (Severity.ERROR, "spec.updateStrategy.rollingUpdate.maxUnavailable")
    ]
    assert found({"apiVersion": "apps/v1", "kind": "DaemonSet"})[0][0] is Severity.ERROR


@pytest.mark.parametrize(
    ("risky", "path"),
    [
        ({"minReadySeconds": 0}, "spec.minReadySeconds"),
        ({"rolling": {"partition": 3}}, "spec.updateStrategy.rollingUpdate.partition"),
        (
            {"rolling": {"maxUnavailable": "100%"}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
        (
            {
                "rolling": {"maxSurge": 1},
                "pod": {
                    "containers": [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}]
                },
            },
            "spec.template.spec.containers[0].ports[0].hostPort",
        ),
        (
            {"rolling": {"maxSurge": 1}, "pod": {"hostNetwork": True}},
            "spec.template.spec.hostNetwork",
        ),
        (
            {"pod": {"containers": [{**CONTAINER, "image": "a"}]}},
            "spec.template.spec.containers[0].image",
        ),
        (
            {"pod": {"containers": [{**CONTAINER, "image": "a:latest"}]}},
            "spec.template.spec.containers[0].image",
        ),
        (
            {"pod": {"containers": [{"name": "a", "image": "a:1"}]}},
            "spec.template.spec.containers[0].readinessProbe",
        ),
    ],
)
def test_what_is_risky_in_a_rollout_is_a_warning(risky: Object, path: str) -> None:
    assert found(manifest(**risky)) == [(Severity.WARNING, path)]


@pytest.mark.parametrize(
    "careful",
    [
        {"rolling": {"partition": "30%"}},
        {"pod": {"containers": [{**CONTAINER, "image": "a@sha256:" + "0" * 64}]}},
        {"pod": {"containers": [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}]}},
        {"minReadySeconds": 0, "updateStrategy": {"type": "OnDelete"}},
    ],
)
def test_what_is_not_risky_is_not_warned_of(careful: Object) -> None:
    assert lint_daemonset(manifest(**careful)) == []
