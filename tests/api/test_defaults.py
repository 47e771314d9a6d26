from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from everynode.api import defaults, keys
from tests.support.manifest_corpus import VALID, VALID_PODS, Case

if TYPE_CHECKING:
    from tests.support.real_server import RealApiServer

Object = dict[str, Any]


def template_of(**spec: Any) -> Object:
    return {"spec": {"containers": [{"name": "agent", "image": "agent:1"}]} | spec}


def container_of(**fields: Any) -> Object:
    made = defaults.default_template(
        {"spec": {"containers": [{"name": "agent", "image": "agent:1"} | fields]}}
    )
    container: Object = made["spec"]["containers"][0]
    return container


def volume_of(**fields: Any) -> Object:
    made = defaults.default_template(template_of(volumes=[{"name": "data"} | fields]))
    volume: Object = made["spec"]["volumes"][0]
    return volume


def strategy_of(api_version: str, **spec: Any) -> Object:
    made = defaults.default_daemonset({"apiVersion": api_version, "spec": spec})
    strategy: Object = made["spec"]["updateStrategy"]
    return strategy


def test_an_empty_pod_spec_gets_the_defaults_of_the_native_api() -> None:
    assert defaults.default_template({"spec": {"containers": []}})["spec"] == {
        "containers": [],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_a_template_is_defaulted_into_a_new_one() -> None:
    template = template_of(volumes=[{"name": "data"}])
    defaults.default_template(template)
    assert template == template_of(volumes=[{"name": "data"}])


def test_an_explicit_value_is_kept() -> None:
    made = defaults.default_template(
        template_of(
            dnsPolicy="Default", terminationGracePeriodSeconds=0, securityContext={"fsGroup": 1}
        )
    )["spec"]
    assert made["dnsPolicy"] == "Default"
    assert made["terminationGracePeriodSeconds"] == 0
    assert made["securityContext"] == {"fsGroup": 1}


def test_defaulting_twice_changes_nothing() -> None:
    once = defaults.default_template(
        template_of(
            volumes=[{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}],
            serviceAccount="robot",
        )
    )
    assert defaults.default_template(once) == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.test:5000/team/nginx", "Always"),
        ("nginx:1.7.9", "IfNotPresent"),
        ("registry.test:5000/team/nginx:1.7.9", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
        (None, "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: object, policy: str) -> None:
    assert defaults.pull_policy(image) == policy


def test_a_container_gets_its_defaults() -> None:
    assert container_of() == {
        "name": "agent",
        "image": "agent:1",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    }


def test_ports_speak_tcp() -> None:
    assert container_of(ports=[{"containerPort": 80}])["ports"] == [
        {"containerPort": 80, "protocol": "TCP"}
    ]


def test_env_sources_get_their_version_and_optionality() -> None:
    env = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "KEY", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}},
    ]
    made = container_of(env=env)["env"]
    assert made[0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made[1]["valueFrom"]["fileKeyRef"]["optional"] is False


@pytest.mark.parametrize("name", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probes_get_their_numbers_and_their_path(name: str) -> None:
    probe = container_of(**{name: {"httpGet": {"port": 80}, "periodSeconds": 0}})[name]
    assert probe == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_a_grpc_probe_names_the_empty_service() -> None:
    probe = container_of(livenessProbe={"grpc": {"port": 80}})["livenessProbe"]
    assert probe["grpc"] == {"port": 80, "service": ""}


def test_lifecycle_handlers_get_path_and_scheme() -> None:
    lifecycle = container_of(lifecycle={"preStop": {"httpGet": {"port": 80}}})["lifecycle"]
    assert lifecycle["preStop"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}


def test_init_containers_get_the_same_defaults() -> None:
    made = defaults.default_template(template_of(initContainers=[{"name": "i", "image": "i"}]))
    assert made["spec"]["initContainers"][0]["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({}, {"emptyDir": {}}),
        ({"hostPath": {"path": "/"}}, {"hostPath": {"path": "/", "type": ""}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
        ({"configMap": {"name": "c", "defaultMode": 0}}, None),
        ({"rbd": {"image": "i"}}, None),
        ({"image": {"reference": "r"}}, {"image": {"reference": "r", "pullPolicy": "Always"}}),
    ],
)
def test_volume_sources_get_their_defaults(given: Object, filled: Object | None) -> None:
    expected = given if filled is None else filled
    made = volume_of(**given)
    for source, fields in expected.items():
        assert fields.items() <= made[source].items()
    assert set(made) == {"name", *expected}


def test_projected_tokens_live_for_an_hour() -> None:
    made = volume_of(
        projected={
            "sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "x"}}]}},
            ]
        }
    )["projected"]
    assert made["defaultMode"] == 420
    assert made["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert made["sources"][1]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"


def test_claims_of_ephemeral_volumes_are_file_systems() -> None:
    made = volume_of(ephemeral={"volumeClaimTemplate": {"spec": {}}})
    assert made["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"


@pytest.mark.parametrize("field", ["serviceAccount", "serviceAccountName"])
def test_the_service_account_is_shown_under_both_names(field: str) -> None:
    made = defaults.default_template(template_of(**{field: "robot"}))["spec"]
    assert made["serviceAccount"] == made["serviceAccountName"] == "robot"


def test_annotations_of_old_init_containers_are_stripped() -> None:
    template = template_of() | {
        "metadata": {"annotations": {"pod.beta.kubernetes.io/init-containers": "[]", "a": "b"}}
    }
    assert defaults.default_template(template)["metadata"]["annotations"] == {"a": "b"}


def test_a_pod_requests_what_it_limits() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    pod = defaults.default_pod(
        {"spec": {"containers": [{"name": "a", "image": "a", "resources": resources}]}}
    )
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "100m",
        "memory": "1Gi",
    }
    assert pod["spec"]["enableServiceLinks"] is True


def test_quantities_are_written_as_the_server_writes_them() -> None:
    limits = {"cpu": 0.5, "memory": "1024Mi", "fine": "0.1m", "odd": "lots"}
    made = container_of(resources={"limits": limits})["resources"]["limits"]
    assert made == {"cpu": "500m", "memory": "1Gi", "fine": "1m", "odd": "lots"}
    assert volume_of(emptyDir={"sizeLimit": "1024Ki"})["emptyDir"] == {"sizeLimit": "1Mi"}


def test_a_reference_to_a_resource_has_a_divisor() -> None:
    env = [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    made = container_of(env=env)["env"][0]["valueFrom"]["resourceFieldRef"]
    assert made == {"resource": "limits.cpu", "divisor": "0"}


def test_a_pod_with_limits_of_its_own_requests_what_its_containers_need() -> None:
    def asks(cpu: str, **fields: Any) -> Object:
        return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}} | fields

    spec = {
        "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
        "initContainers": [asks("1", restartPolicy="Always"), asks("2500m")],
        "containers": [asks("1"), asks("500m")],
    }
    made = defaults.default_pod({"spec": spec})["spec"]["resources"]
    assert made["requests"] == {"cpu": "3500m", "memory": "1Gi"}


def test_a_template_does_not_request_what_it_limits() -> None:
    assert container_of(resources={"limits": {"cpu": "1"}})["resources"] == {"limits": {"cpu": "1"}}


def test_a_pod_on_the_host_network_opens_its_ports_on_the_host() -> None:
    containers = [{"name": "a", "image": "a", "ports": [{"containerPort": 80}]}]
    pod = defaults.default_pod({"spec": {"hostNetwork": True, "containers": containers}})
    assert pod["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_native_amounts_are_defaulted_each_on_its_own() -> None:
    assert strategy_of(keys.APPS_V1) == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }
    rolling = {"maxSurge": 1}
    assert strategy_of(keys.APPS_V1, updateStrategy={"rollingUpdate": rolling})[
        "rollingUpdate"
    ] == {"maxUnavailable": 1, "maxSurge": 1}


def test_native_on_delete_gets_no_rolling_update() -> None:
    assert strategy_of(keys.APPS_V1, updateStrategy={"type": "OnDelete"}) == {"type": "OnDelete"}


@pytest.mark.parametrize(
    ("rolling", "filled"),
    [
        ({}, {"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0}),
        ({"maxSurge": 1}, {"rollingUpdateType": "Standard", "maxSurge": 1}),
        ({"maxUnavailable": "10%"}, {"rollingUpdateType": "Standard", "maxUnavailable": "10%"}),
        (
            {"rollingUpdateType": "Surging"},
            {"rollingUpdateType": "Surging", "maxSurge": 1, "maxUnavailable": 0},
        ),
        (
            {"type": "Surging", "maxSurge": "30%"},
            {"type": "Surging", "maxSurge": "30%", "maxUnavailable": 0},
        ),
    ],
)
def test_advanced_amounts_are_defaulted_only_together(rolling: Object, filled: Object) -> None:
    made = strategy_of(keys.V1ALPHA1, updateStrategy={"rollingUpdate": rolling})
    assert made["rollingUpdate"] == filled


def test_an_advanced_daemonset_leaves_its_template_as_it_is() -> None:
    made = defaults.default_daemonset(
        {"apiVersion": keys.V1BETA1, "spec": {"template": template_of()}}
    )
    assert made["spec"]["template"] == template_of()
    assert made["spec"]["burstReplicas"] == 250
    assert made["spec"]["revisionHistoryLimit"] == 10


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": []},
        {"spec": {"containers": "none"}},
        {"spec": {"containers": [1, None, {"ports": {"a": 1}, "env": [3], "livenessProbe": []}]}},
        {"metadata": [], "spec": {"volumes": [{"name": 1, "secret": "s", "projected": [1]}]}},
    ],
)
def test_wrong_types_are_left_alone(broken: Object) -> None:
    native = {"apiVersion": keys.APPS_V1, "spec": {"template": broken}}
    advanced = {"apiVersion": keys.V1BETA1, "spec": broken}
    assert holds(defaults.default_template(broken), broken)
    assert holds(defaults.default_pod(broken), broken)
    assert holds(defaults.default_daemonset(native), native)
    assert holds(defaults.default_daemonset(advanced), advanced)


def holds(made: Any, given: Any) -> bool:
    """Whether all that was given is still there; what is missing may have been added."""
    if isinstance(given, dict):
        return isinstance(made, dict) and all(
            key in made and holds(made[key], value) for key, value in given.items()
        )
    if isinstance(given, list):
        return len(made) == len(given) and all(map(holds, made, given))
    return bool(made == given)


# --- The same answers from a real API server ---------------------------------------------------

NATIVE = [case for case in VALID if case.manifest["apiVersion"] == keys.APPS_V1]


def told(value: Any) -> Any:
    """The value as an API server tells it: without nulls and without empty lists."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items() if item not in (None, [])}
    return [told(item) for item in value] if isinstance(value, list) else value


@pytest.mark.kubernetes
@pytest.mark.parametrize("case", NATIVE, ids=repr)
def test_the_api_server_fills_in_the_same_for_a_daemonset(real: RealApiServer, case: Case) -> None:
    answer = real.try_out(case.manifest)
    assert answer.code == 201, answer.body["message"]
    ours = defaults.default_daemonset(case.manifest)["spec"]
    assert told(ours) == told(answer.body["spec"])


@pytest.mark.kubernetes
@pytest.mark.parametrize("case", VALID_PODS, ids=repr)
def test_the_api_server_fills_in_the_same_for_a_pod(real: RealApiServer, case: Case) -> None:
    answer = real.try_out(case.manifest)
    assert answer.code == 201, answer.body["message"]
    # What admission adds is none of the type's defaults.
    theirs = {
        name: value
        for name, value in answer.body["spec"].items()
        if name not in ("tolerations", "priority", "preemptionPolicy")
    }
    assert told(defaults.default_pod(case.manifest)["spec"]) == told(theirs)
