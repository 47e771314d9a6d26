from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    Flavour,
    IntOrPercent,
    LabelSelector,
    LabelSelectorRequirement,
    LifecycleHook,
    RollingUpdateType,
    UpdateStrategyType,
)
from everynode.api.objects import Condition
from everynode.api.versions import decode_daemonset, encode_status

Object = dict[str, Any]
SELECTOR = {"matchLabels": {"app": "agent"}}
TEMPLATE = {
    "metadata": {"labels": {"app": "agent"}},
    "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
}


def manifest(version: str = keys.V1BETA1, **spec: Any) -> Object:
    return {
        "apiVersion": version,
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default", "uid": "u-1", "generation": 2},
        "spec": {"selector": SELECTOR, "template": TEMPLATE} | spec,
    }


def rolling(**fields: Any) -> DaemonSet:
    return decode_daemonset(manifest(updateStrategy={"rollingUpdate": fields}))


def paths(daemonset: DaemonSet) -> list[str]:
    return [fault.path for fault in daemonset.faults]


# --- What is right -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1])
def test_a_plain_daemonset_gets_the_defaults_of_its_kind(version: str) -> None:
    daemonset = decode_daemonset(manifest(version))
    assert daemonset.faults == ()
    assert daemonset.flavour is (Flavour.NATIVE if version == keys.APPS_V1 else Flavour.ADVANCED)
    assert daemonset.strategy.type is UpdateStrategyType.ROLLING
    assert daemonset.strategy.rolling is RollingUpdateType.STANDARD
    assert daemonset.strategy.max_unavailable == IntOrPercent(1)
    assert daemonset.strategy.max_surge == IntOrPercent(0)
    assert daemonset.burst == IntOrPercent(250)
    assert daemonset.history_limit == 10
    assert (daemonset.name, daemonset.namespace, daemonset.uid) == ("agent", "default", "u-1")


def test_the_template_is_kept_byte_for_byte() -> None:
    template = b'{ "spec":{"containers" : [ ]},"z":1, "a": null}'
    raw = b'{"apiVersion":"apps/v1","spec":{"selector":{},"template":%b}}' % template
    daemonset = decode_daemonset(raw)
    assert daemonset.template == template
    assert type(daemonset.template) is bytes


def test_an_item_of_a_native_list_says_nothing_of_its_kind() -> None:
    item = manifest()
    del item["apiVersion"]
    assert decode_daemonset(item, flavour=Flavour.NATIVE).flavour is Flavour.NATIVE


def test_every_field_of_the_advanced_kind_is_read() -> None:
    daemonset = decode_daemonset(
        manifest(
            updateStrategy={
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "rollingUpdateType": "InPlaceIfPossible",
                    "maxUnavailable": "10%",
                    "partition": "50%",
                    "paused": True,
                    "selector": {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]
                    },
                },
            },
            minReadySeconds=7,
            burstReplicas="20%",
            revisionHistoryLimit=0,
            lifecycle={
                "preDelete": {
                    "labelsHandler": {"hook": "on"},
                    "finalizersHandler": ["example.io/hook"],
                    "markPodNotReady": True,
                }
            },
            scaleStrategy={"partitionedScaling": True},
        )
    )
    strategy = daemonset.strategy
    assert daemonset.faults == ()
    assert strategy.rolling is RollingUpdateType.IN_PLACE
    assert strategy.max_unavailable == IntOrPercent(10, percent=True)
    assert strategy.partition == IntOrPercent(50, percent=True)
    assert strategy.paused
    assert strategy.selector == LabelSelector(
        match_expressions=(LabelSelectorRequirement("zone", "In", ("a",)),)
    )
    assert daemonset.min_ready_seconds == 7
    assert daemonset.burst == IntOrPercent(20, percent=True)
    assert daemonset.history_limit == 0
    assert daemonset.pre_delete == LifecycleHook({"hook": "on"}, ("example.io/hook",), True)
    assert daemonset.progressive


def test_a_native_daemonset_has_no_advanced_features() -> None:
    daemonset = decode_daemonset(
        manifest(
            keys.APPS_V1,
            updateStrategy={"rollingUpdate": {"partition": 5, "paused": True}},
            lifecycle={"preDelete": {"labelsHandler": {"a": "b"}}},
        )
    )
    assert daemonset.strategy.partition == IntOrPercent(0)
    assert not daemonset.strategy.paused
    assert daemonset.pre_delete is None


@pytest.mark.parametrize("field", ["rollingUpdateType", "type"])
def test_surging_is_standard_with_a_surge(field: str) -> None:
    strategy = rolling(**{field: "Surging"}).strategy
    assert strategy.rolling is RollingUpdateType.STANDARD
    assert strategy.max_surge == IntOrPercent(1)
    assert strategy.max_unavailable == IntOrPercent(0)
    assert rolling(**{field: "Surging"}, maxSurge="30%").strategy.max_surge == IntOrPercent(
        30, percent=True
    )


def test_a_surge_alone_leaves_nothing_unavailable() -> None:
    daemonset = rolling(maxSurge=1)
    assert daemonset.faults == ()
    assert daemonset.strategy.max_unavailable == IntOrPercent(0)


@pytest.mark.parametrize(
    ("annotation", "field", "progressive"),
    [
        (None, None, False),
        ("true", None, True),
        ("True", None, False),
        ("true", False, False),
        (None, True, True),
        ("false", True, True),
    ],
)
def test_the_field_beats_the_annotation(
    annotation: str | None, field: bool | None, progressive: bool
) -> None:
    made = manifest()
    if annotation is not None:
        made["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: annotation}
    if field is not None:
        made["spec"]["scaleStrategy"] = {"partitionedScaling": field}
    assert decode_daemonset(made).progressive is progressive


# --- What is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"spec": 1}', b'{"apiVersion":"v1","kind":"Pod"}'])
def test_what_is_no_daemonset_is_refused_in_words(raw: bytes) -> None:
    with pytest.raises(ValueError, match="DaemonSet"):
        decode_daemonset(raw)


@pytest.mark.parametrize("broken", ["abc", "5", "-5%", "105%", -1, 1.5, True, [], {}])
def test_a_broken_amount_is_named_and_means_the_fewest_pods(broken: object) -> None:
    unavailable = rolling(maxUnavailable=broken)
    assert paths(unavailable) == ["spec.updateStrategy.rollingUpdate.maxUnavailable"]
    assert unavailable.strategy.max_unavailable == IntOrPercent(1)

    surge = rolling(maxSurge=broken, maxUnavailable=2)
    assert "spec.updateStrategy.rollingUpdate.maxSurge" in paths(surge)
    assert surge.strategy.max_surge == IntOrPercent(0)

    partition = rolling(partition=broken)
    assert paths(partition) == ["spec.updateStrategy.rollingUpdate.partition"]
    assert partition.strategy.partition == IntOrPercent(100, percent=True)


def test_an_unknown_strategy_updates_nothing_by_itself() -> None:
    daemonset = decode_daemonset(manifest(updateStrategy={"type": "Sideways"}))
    assert paths(daemonset) == ["spec.updateStrategy.type"]
    assert daemonset.strategy.type is UpdateStrategyType.ON_DELETE


@pytest.mark.parametrize(
    "spec",
    [
        {"updateStrategy": {"rollingUpdate": []}},
        {"updateStrategy": {"rollingUpdate": {"selector": {"matchExpressions": [{"key": 1}]}}}},
        {
            "updateStrategy": {
                "rollingUpdate": {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
            }
        },
        {"updateStrategy": {"rollingUpdate": {"paused": "yes"}}},
        {"lifecycle": {"preDelete": []}},
        {"lifecycle": {"preDelete": {"labelsHandler": {"a": 1}}}},
        {"lifecycle": "none"},
    ],
)
def test_what_cannot_be_read_stops_the_rollout(spec: Object) -> None:
    daemonset = decode_daemonset(manifest(**spec))
    assert daemonset.faults
    assert daemonset.strategy.paused


def test_two_spellings_must_agree() -> None:
    assert rolling(rollingUpdateType="Standard", type="Standard").faults == ()
    disagreeing = rolling(rollingUpdateType="Standard", type="InPlaceIfPossible")
    assert paths(disagreeing) == ["spec.updateStrategy.rollingUpdate.type"]


def test_a_surge_beside_unavailable_nodes_is_kept_alone() -> None:
    daemonset = rolling(maxSurge=2, maxUnavailable=3)
    assert paths(daemonset) == ["spec.updateStrategy.rollingUpdate.maxSurge"]
    assert daemonset.strategy.max_surge == IntOrPercent(2)
    assert daemonset.strategy.max_unavailable == IntOrPercent(0)


def test_an_in_place_update_never_surges() -> None:
    daemonset = rolling(rollingUpdateType="InPlaceIfPossible", maxSurge=2)
    assert paths(daemonset) == ["spec.updateStrategy.rollingUpdate.maxSurge"]
    assert daemonset.strategy.max_surge == IntOrPercent(0)


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"a": 1}}, {"matchLabels": {"-": "x"}}, [], None]
)
def test_an_invalid_selector_selects_no_node(selector: object) -> None:
    daemonset = decode_daemonset(manifest(selector=selector))
    assert daemonset.selector == LabelSelector()
    assert daemonset.faults


def test_broken_numbers_are_named_and_replaced() -> None:
    daemonset = decode_daemonset(
        manifest(minReadySeconds="30s", burstReplicas=1.5, revisionHistoryLimit=[])
    )
    assert sorted(paths(daemonset)) == [
        "spec.burstReplicas",
        "spec.minReadySeconds",
        "spec.revisionHistoryLimit",
    ]
    assert daemonset.burst == IntOrPercent(1)
    assert (daemonset.min_ready_seconds, daemonset.history_limit) == (0, 10)


def test_a_broken_field_of_metadata_or_status_costs_only_itself() -> None:
    made = manifest()
    made["metadata"] |= {"labels": {"a": 1}, "annotations": {"b": "c"}}
    made["status"] = {"numberReady": "many", "observedGeneration": 3, "conditions": [{}]}
    daemonset = decode_daemonset(made)
    assert daemonset.name == "agent"
    assert daemonset.metadata.annotations == {"b": "c"}
    assert daemonset.status.observed_generation == 3
    assert daemonset.status.ready == 0
    assert paths(daemonset) == ["metadata.labels", "status.numberReady", "status.conditions"]


def test_what_was_read_before_is_read_the_same_again() -> None:
    broken = manifest(minReadySeconds=-1)
    assert decode_daemonset(broken) == decode_daemonset(broken)
    assert decode_daemonset(manifest(minReadySeconds=1)).faults == ()
    native = manifest(keys.APPS_V1, burstReplicas=5)
    assert decode_daemonset(manifest(burstReplicas=5)).burst == IntOrPercent(5)
    assert decode_daemonset(native).burst == IntOrPercent(250)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type", "rollingUpdate", "maxSurge", "maxUnavailable", "partition", "selector",
                    "matchLabels", "matchExpressions", "key", "operator", "values", "preDelete",
                    "labelsHandler", "finalizersHandler", "paused", "partitionedScaling", "a",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)  # fmt: skip
SPEC = st.dictionaries(
    st.sampled_from(
        [
            "selector", "updateStrategy", "minReadySeconds", "burstReplicas", "lifecycle",
            "revisionHistoryLimit", "scaleStrategy",
        ]
    ),
    JSON,
)  # fmt: skip


@given(SPEC, JSON, JSON, st.sampled_from([keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1]))
def test_no_stored_value_is_too_broken_to_decode(
    spec: Object, metadata: Any, status: Any, version: str
) -> None:
    raw = json.dumps(
        {"apiVersion": version, "metadata": metadata, "spec": spec, "status": status}
    ).encode()
    made = decode_daemonset(raw)
    assert made.flavour is (Flavour.NATIVE if version == keys.APPS_V1 else Flavour.ADVANCED)
    amounts = made.burst, made.strategy.partition, made.strategy.max_unavailable
    assert min(amount.value for amount in amounts) >= 0
    assert made.min_ready_seconds >= 0


# --- Status ------------------------------------------------------------------------------------

STATUS = DaemonSetStatus(
    observed_generation=3,
    desired=5,
    current=5,
    ready=4,
    updated=2,
    available=4,
    unavailable=1,
    update_revision="agent-1",
    collision_count=0,
    conditions=(
        Condition("Available", "True", "AsExpected", "", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ),
)


def test_the_advanced_status_carries_the_hash_under_both_names() -> None:
    made = encode_status(Flavour.ADVANCED, STATUS)
    assert made["updateRevision"] == made["daemonSetHash"] == "agent-1"
    assert made["numberMisscheduled"] == 0
    assert made["conditions"] == [
        {
            "type": "Available",
            "status": "True",
            "reason": "AsExpected",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
    ]


def test_the_native_status_has_no_hash() -> None:
    made = encode_status(Flavour.NATIVE, DaemonSetStatus(update_revision="agent-1"))
    assert made == {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }


@pytest.mark.parametrize("version", [keys.V1ALPHA1, keys.V1BETA1])
def test_a_status_is_read_as_it_was_written(version: str) -> None:
    made = manifest(version) | {"status": encode_status(Flavour.ADVANCED, STATUS)}
    assert decode_daemonset(made).status == STATUS


@pytest.mark.parametrize("name", ["updateRevision", "daemonSetHash"])
def test_either_name_of_the_hash_is_read(name: str) -> None:
    assert decode_daemonset(manifest() | {"status": {name: "x"}}).status.update_revision == "x"


def test_a_daemonset_nested_too_deeply_is_none() -> None:
    deep = b'{"apiVersion":"apps/v1","spec":{},"x":' + b"[" * 5000 + b"]" * 5000 + b"}"
    with pytest.raises(ValueError, match="this is not a DaemonSet"):
        decode_daemonset(deep)
