from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.decode import DecodeError
from everynode.api.objects import (
    ControllerRevision,
    Lease,
    Node,
    Pod,
    Resources,
)
from everynode.kube.watch.decode import Decoder, InternTable, InternTables, RecentlyDecoded

Json = dict[str, Any]

decode_pod = Decoder(Pod).one


def owner_of(kind: str = "DaemonSet", group: str = "apps.kruise.io/v1beta1") -> Json:
    return {"apiVersion": group, "kind": kind, "name": "agent", "uid": "d1", "controller": True}


def pod_json(name: str = "agent-1", **changes: Any) -> Json:
    pod: Json = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "uid": f"uid-of-{name}",
            "resourceVersion": "41",
            "labels": {"app": "agent", "controller-revision-hash": "7c6f5d8b94"},
            "annotations": {"checksum/config": "8f2a"},
            "ownerReferences": [owner_of()],
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {
            "nodeName": "node-a",
            "affinity": {"nodeAffinity": {}},
            "containers": [
                {
                    "name": "agent",
                    "image": "agent:1",
                    "args": ["--verbose"],
                    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-07-04T12:30:05Z",
                }
            ],
            "containerStatuses": [
                {
                    "name": "agent",
                    "image": "agent:1",
                    "imageID": "agent@sha256:1",
                    "containerID": f"containerd://{name}",
                    "state": {"running": {"startedAt": "2026-07-04T12:30:01Z"}},
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
        },
    }
    return merged(pod, changes)


def merged(target: Json, changes: Json) -> Json:
    for key, value in changes.items():
        both_maps = isinstance(value, dict) and isinstance(target.get(key), dict)
        target[key] = merged(target[key], value) if both_maps else value
    return target


def body_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def test_a_pod_is_decoded_as_far_as_it_is_read() -> None:
    pod = decode_pod(body_of(pod_json()))
    assert (pod.name, pod.hash, pod.metadata.resource_version) == ("agent-1", "7c6f5d8b94", "41")
    assert pod.spec.containers[0].resources.limits == {"memory": "1Gi"}
    ready = pod.condition("Ready")
    assert ready is not None
    assert ready.last_transition_time is not None


def test_pods_of_one_daemonset_share_equal_parts() -> None:
    decoder = Decoder(Pod)
    one, other = (decoder.one(body_of(pod_json(name))) for name in ("agent-1", "agent-2"))
    assert one.metadata.labels is other.metadata.labels
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.metadata.annotations is other.metadata.annotations
    assert one.metadata.namespace is other.metadata.namespace
    assert one.spec.node_name is other.spec.node_name
    assert one.spec.containers is other.spec.containers
    first, second = one.status.conditions[0], other.status.conditions[0]
    assert first.type is second.type
    assert first.status is second.status
    assert one.status.container_statuses[0].image_id is other.status.container_statuses[0].image_id
    assert (
        one.status.container_statuses[0].resources is other.status.container_statuses[0].resources
    )
    assert one.uid != other.uid


def test_equal_condition_messages_are_shared() -> None:
    failing = {"reason": "ContainersNotReady", "message": "containers with unready status: [agent]"}
    changes: Json = {
        "metadata": {"finalizers": ["example.com/drain"]},
        "status": {"conditions": [{"type": "Ready", "status": "False", **failing}]},
    }
    decoder = Decoder(Pod)
    one, other = (decoder.one(body_of(pod_json(name, **changes))) for name in ("a", "b"))
    assert one.metadata.finalizers == ("example.com/drain",)
    assert one.metadata.finalizers is other.metadata.finalizers
    first, second = one.status.conditions[0], other.status.conditions[0]
    assert (first.reason, first.message) == (failing["reason"], failing["message"])
    assert first.reason is second.reason
    assert first.message is second.message


def test_pods_that_differ_do_not_share() -> None:
    decoder = Decoder(Pod)
    one = decoder.one(body_of(pod_json()))
    more = {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}}
    container = {"name": "agent", "image": "agent:1", "resources": more}
    other = decoder.one(
        body_of(pod_json(metadata={"labels": {"app": "web"}}, spec={"containers": [container]}))
    )
    assert one.metadata.labels["app"] == "agent"
    assert other.metadata.labels == {"app": "web", "controller-revision-hash": "7c6f5d8b94"}
    assert one.spec.containers[0].resources.requests == {"cpu": "100m"}
    assert other.spec.containers[0].resources.requests == {"cpu": "200m"}


def test_an_empty_pod_has_the_defaults_of_every_field() -> None:
    bare = decode_pod(b'{"metadata":{"name":"a"}}')
    assert bare.metadata.labels == {}
    assert bare.metadata.owner_references == ()
    assert bare.metadata.finalizers == ()
    assert bare.spec.containers == ()
    assert bare.spec.readiness_gates == ()
    assert bare.status.phase == "Pending"


def test_the_affinity_is_kept_until_the_pod_has_its_node() -> None:
    pinned: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
    waiting = decode_pod(body_of(pod_json(spec={"nodeName": "", "affinity": pinned})))
    bound = decode_pod(body_of(pod_json(spec={"affinity": pinned})))
    assert waiting.spec.affinity is not None
    assert bound.spec.affinity is None


def test_annotations_of_an_update_in_place_are_kept() -> None:
    state = '{"revision":"7c6f5d8b94"}'
    pod = decode_pod(
        body_of(pod_json(metadata={"annotations": {"apps.kruise.io/inplace-update-state": state}}))
    )
    assert pod.metadata.annotations.inplace_state == state


NULLS = {
    "metadata": {"labels": None, "annotations": None, "ownerReferences": None, "finalizers": None},
    "spec": {"containers": None, "readinessGates": None, "nodeName": None, "affinity": None},
    "status": {"conditions": None, "containerStatuses": None, "startTime": None},
}


@pytest.mark.parametrize(
    "changes",
    [
        *({part: {key: None}} for part, keys in NULLS.items() for key in keys),
        {"spec": None, "status": None},
        {"status": {"containerStatuses": [{"name": "agent", "state": None, "resources": None}]}},
    ],
)
def test_a_null_field_counts_as_absent(changes: Json) -> None:
    assert decode_pod(body_of(pod_json(**changes))).name == "agent-1"


def test_a_null_costs_nothing_of_the_rest() -> None:
    pod = decode_pod(body_of(pod_json(metadata={"finalizers": None})))
    assert pod == decode_pod(body_of(pod_json()))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Pod without a readable name: Input data was truncated"),
        (b'{"kind":"Po', "Pod without a readable name: Input data was truncated"),
        (b"null", "Pod without a readable name: Expected `object`, got `null`"),
        (b'{"metadata":{"name":"a\xff"}}', "Pod without a readable name: "),
        (b'{"a":' * 100_000, "Pod without a readable name: "),
        (b'{"metadata":{"name":7}}', "Pod 7: Expected `str`, got `int`"),
        (
            body_of(pod_json("a", spec={"nodeName": 1})),
            "Pod kube-system/a: Expected `str`, got `int` - at `$.spec.nodeName`",
        ),
    ],
)
def test_what_cannot_be_decoded_is_named(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_pod(body)
    assert str(caught.value).startswith(message)


def node_json(name: str, **changes: Any) -> Json:
    node: Json = {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "zone": "a"},
            "annotations": {"heartbeat": "1"},
        },
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "False", "lastHeartbeatTime": "2026-07-04T12:30:05Z"}
            ]
        },
    }
    return merged(node, changes)


def test_nodes_share_equal_parts_and_keep_their_names() -> None:
    decoder = Decoder(Node)
    one, other = (decoder.one(body_of(node_json(name))) for name in ("node-a", "node-b"))
    assert (one.name, one.ready) == ("node-a", "False")
    assert one.metadata.labels == {"kubernetes.io/hostname": "node-a", "zone": "a"}
    assert one.spec is other.spec
    assert one.status is other.status
    assert one.metadata.labels["zone"] is other.metadata.labels["zone"]
    assert decode_pod(body_of(pod_json())).spec.node_name is one.name


def test_a_revision_holds_its_own_bytes_with_every_null_in_them() -> None:
    data = b'{"spec":{"template":{"metadata":{"creationTimestamp":null}}}}'
    body = b'{"metadata":{"name":"r","labels":null},"revision":3,"data":%b}' % data
    revision = Decoder(ControllerRevision).one(body)
    assert revision.revision == 3
    assert bytes(revision.data) == data


def test_other_kinds_are_decoded_as_they_are() -> None:
    body = b'{"metadata":{"name":"l"},"spec":{"holderIdentity":"a","renewTime":null}}'
    assert Decoder(Lease).one(body).spec.holder_identity == "a"


def test_a_shared_value_is_the_first_that_was_equal() -> None:
    shared = InternTable(limit=10)
    first, second = "x" * 30, "".join(["x"] * 30)
    assert first is not second
    assert shared[first] is first
    assert shared[second] is first


def test_values_in_use_outlive_the_others() -> None:
    shared = InternTable(limit=3)
    used = shared["x" * 30]
    for index in range(100):
        shared[f"once-{index}"]
        assert shared["".join(["x"] * 30)] is used
    assert "once-0" not in shared


@given(st.lists(st.integers(0, 50)), st.integers(1, 8))
def test_tables_are_bounded_and_always_answer_with_an_equal(values: list[int], limit: int) -> None:
    shared = InternTable(limit)
    for value in values:
        text = f"value {value}"
        assert shared[text] == text
        assert len(shared) <= limit


def test_long_texts_are_not_kept() -> None:
    tables = InternTables()
    tables.text("m" * 513)
    assert len(tables.texts) == 0
    tables.text("m" * 512)
    assert len(tables.texts) == 1


def test_ids_versions_and_times_are_never_kept() -> None:
    tables = InternTables()
    decoder = Decoder(Pod, tables=tables)
    decoder.one(body_of(pod_json("agent-1")))
    sizes = (len(tables.texts), len(tables.parts))
    later = {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-07-05T00:00:00Z"}
        ]
    }
    decoder.one(body_of(pod_json("agent-2", metadata={"resourceVersion": "42"}, status=later)))
    assert (len(tables.texts), len(tables.parts)) == sizes


def test_requests_and_limits_are_not_taken_for_each_other() -> None:
    tables = InternTables()
    requests = tables.by_encoding(Resources(requests={"cpu": "1"}))
    limits = tables.by_encoding(Resources(limits={"cpu": "1"}))
    assert (requests.requests, limits.limits) == ({"cpu": "1"}, {"cpu": "1"})


# --- The same bytes once more ------------------------------------------------------------------


def test_the_same_bytes_are_decoded_once_by_all_decoders() -> None:
    body = json.dumps(pod_json()).encode()
    assert Decoder(Pod).one(body) is Decoder(Pod).one(body)


def test_bytes_that_were_seen_long_ago_are_decoded_again() -> None:
    decode = Decoder(Pod).one
    body = json.dumps(pod_json()).encode()
    first = decode(body)
    for number in range(RecentlyDecoded.LIMIT):
        decode(json.dumps(pod_json(f"agent-{number}")).encode())
    again = decode(body)
    assert again == first
    assert again is not first


def test_views_into_a_list_are_not_held() -> None:
    decode = Decoder(Pod).one
    view = msgspec.Raw(json.dumps(pod_json()).encode())
    assert decode(view) is not decode(view)
