from __future__ import annotations

import msgspec
import pytest

from everynode.api.objects import ContainerPort, Node, ObjectMeta, OwnerReference, Pod, PodMeta


def read_pod(text: str) -> Pod:
    return msgspec.json.decode(text, type=Pod)


@pytest.mark.parametrize(
    ("version", "group"),
    [("v1", ""), ("apps/v1", "apps"), ("apps.kruise.io/v1beta1", "apps.kruise.io")],
)
def test_the_group_of_an_owner_is_what_stands_before_the_slash(version: str, group: str) -> None:
    assert OwnerReference(version, "DaemonSet", "agent", "u1").group == group


@pytest.mark.parametrize("kind", [ObjectMeta, PodMeta])
def test_the_controller_is_the_owner_that_says_so(kind: type[ObjectMeta] | type[PodMeta]) -> None:
    bystander = OwnerReference("v1", "Node", "n1", "u1")
    controller = OwnerReference("apps/v1", "DaemonSet", "agent", "u2", controller=True)
    assert kind(owner_references=(bystander, controller)).controller is controller
    assert kind(owner_references=(bystander,)).controller is None


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ('[{"type":"Ready","status":"False"}]', "False"),
        ('[{"type":"DiskPressure","status":"False"},{"type":"Ready"}]', "Unknown"),
        ("[]", "True"),
    ],
)
def test_a_node_that_has_said_nothing_yet_counts_as_ready(conditions: str, ready: str) -> None:
    text = f'{{"metadata":{{"name":"n1"}},"status":{{"conditions":{conditions}}}}}'
    assert msgspec.json.decode(text, type=Node).ready == ready


@pytest.mark.parametrize(
    ("phase", "finished"),
    [
        ("Pending", False),
        ("Running", False),
        ("Unknown", False),
        ("Failed", True),
        ("Succeeded", True),
    ],
)
def test_a_pod_is_finished_when_it_has_ended_well_or_badly(phase: str, finished: bool) -> None:
    assert read_pod(f'{{"metadata":{{}},"status":{{"phase":"{phase}"}}}}').finished is finished


def test_a_pod_is_terminating_once_its_deletion_was_asked_for() -> None:
    assert read_pod('{"metadata":{"deletionTimestamp":"2026-07-04T12:30:05Z"}}').terminating
    assert not read_pod('{"metadata":{"deletionTimestamp":null}}').terminating


def test_a_condition_is_found_by_its_type() -> None:
    pod = read_pod('{"metadata":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}')
    ready = pod.condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    assert pod.condition("Initialized") is None


def test_names_that_are_not_camel_case_are_read_as_the_api_writes_them() -> None:
    port = msgspec.json.decode('{"hostPort":80,"hostIP":"10.0.0.1"}', type=ContainerPort)
    assert (port.host_port, port.host_ip) == (80, "10.0.0.1")
    pod = read_pod(
        '{"metadata":{"uid":"u1","name":"a"},"status":{"containerStatuses":'
        '[{"name":"c","imageID":"i","containerID":"d"}]}}'
    )
    status = pod.status.container_statuses[0]
    assert (pod.uid, pod.hash, status.image_id, status.container_id) == ("u1", "", "i", "d")


def pinned_to(*nodes: str) -> str:
    values = msgspec.json.encode(nodes).decode()
    field = f'{{"key":"metadata.name","operator":"In","values":{values}}}'
    terms = f'{{"nodeSelectorTerms":[{{"matchFields":[{field}]}}]}}'
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return f'{{"nodeAffinity":{{"{required}":{terms}}}}}'


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ('{"nodeName":"n1"}', "n1"),
        (f'{{"affinity":{pinned_to("n2")}}}', "n2"),
        (f'{{"nodeName":"n1","affinity":{pinned_to("n2")}}}', "n1"),
        (f'{{"affinity":{pinned_to("n1", "n2")}}}', ""),
        ('{"affinity":{"nodeAffinity":{}}}', ""),
        ("{}", ""),
    ],
)
def test_a_pod_is_on_the_node_it_is_bound_or_pinned_to(spec: str, node: str) -> None:
    assert read_pod(f'{{"metadata":{{"name":"a"}},"spec":{spec}}}').node == node
