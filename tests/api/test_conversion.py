from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.conversion import convert
from everynode.api.daemonset import DaemonSet
from everynode.api.validation import validate_daemonset
from everynode.api.versions import decode_daemonset
from tests.api.test_versions import JSON, SPEC, manifest

Object = dict[str, Any]


def turned(given: Object, version: str) -> Object:
    """The outcome of a conversion in which nothing is lost."""
    made, lost = convert(given, version)
    assert lost == ()
    return made


def test_the_newer_version_knows_no_surging() -> None:
    made = manifest(keys.V1ALPHA1, updateStrategy={"rollingUpdate": {"type": "Surging"}})
    assert turned(made, keys.V1BETA1)["spec"]["updateStrategy"]["rollingUpdate"] == {
        "rollingUpdateType": "Standard",
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


def test_progressive_creation_is_a_field_in_one_version_and_an_annotation_in_the_other() -> None:
    older = manifest(keys.V1ALPHA1)
    older["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: "true", "mine": "x"}
    newer = turned(older, keys.V1BETA1)
    assert newer["spec"]["scaleStrategy"] == {"partitionedScaling": True}
    assert newer["metadata"]["annotations"] == {"mine": "x"}
    assert turned(newer, keys.V1ALPHA1) == written(older)


def test_progressive_creation_that_was_turned_off_stays_off() -> None:
    newer = manifest(scaleStrategy={"partitionedScaling": False})
    newer["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: "true"}
    older = turned(newer, keys.V1ALPHA1)
    assert "annotations" not in older["metadata"]
    assert not decode_daemonset(older).progressive


def written(stored: Object) -> Object:
    """The manifest without what the server knows of it."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: stored["metadata"][key] for key in kept if key in stored["metadata"]}
    return {**{k: v for k, v in stored.items() if k != "status"}, "metadata": metadata}


@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1])
def test_what_a_server_wrote_is_left_out(version: str) -> None:
    stored = manifest(keys.APPS_V1)
    stored["metadata"] = {
        "name": "agent",
        "namespace": "tools",
        "labels": {"a": "b"},
        "annotations": {keys.TEMPLATE_GENERATION: "3", keys.LAST_APPLIED: "{}", "mine": "x"},
        "ownerReferences": [{"kind": "Operator"}],
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "managedFields": [{}],
    }
    made = turned(stored | {"status": {"numberReady": 3}}, version)
    assert made["apiVersion"] == version
    assert made["metadata"] == {
        "name": "agent",
        "namespace": "tools",
        "labels": {"a": "b"},
        "annotations": {"mine": "x"},
        "ownerReferences": [{"kind": "Operator"}],
    }
    assert made["spec"] == stored["spec"]
    assert "status" not in made


def test_what_is_given_is_not_changed() -> None:
    given = manifest(updateStrategy={"rollingUpdate": {"partition": 3}})
    before = json.dumps(given)
    convert(given, keys.APPS_V1)
    assert json.dumps(given) == before


def test_values_that_say_no_more_than_nothing_are_no_loss() -> None:
    rolling = {"rollingUpdateType": "Standard", "partition": 0, "paused": False, "selector": None}
    plain = manifest(
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {**rolling, "maxSurge": 1}},
        burstReplicas=250,
        scaleStrategy={"partitionedScaling": False},
    )
    made = turned(plain, keys.APPS_V1)
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1}
    assert not made["spec"].keys() & {"burstReplicas", "scaleStrategy"}


def test_what_the_native_kind_cannot_say_is_left_out_and_named() -> None:
    rolling = {
        "rollingUpdateType": "InPlaceIfPossible",
        "partition": "50%",
        "selector": {"matchLabels": {"a": "b"}},
        "paused": True,
        "maxUnavailable": 2,
    }
    rich = manifest(
        updateStrategy={"rollingUpdate": rolling},
        lifecycle={"preDelete": {"labelsHandler": {"a": "b"}}},
        burstReplicas="10%",
        scaleStrategy={"partitionedScaling": True},
    )
    made, lost = convert(rich, keys.APPS_V1)
    assert [loss.path for loss in lost] == [
        "spec.updateStrategy.rollingUpdate.rollingUpdateType",
        "spec.updateStrategy.rollingUpdate.partition",
        "spec.updateStrategy.rollingUpdate.selector",
        "spec.updateStrategy.rollingUpdate.paused",
        "spec.lifecycle",
        "spec.burstReplicas",
        "progressive creation",
    ]
    assert all(loss.instead for loss in lost)
    assert validate_daemonset(made) == []
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize("versions", [(keys.V1BETA1, "apps/v2"), ("apps/v2", keys.V1BETA1)])
def test_an_unknown_version_is_refused(versions: tuple[str, str]) -> None:
    here, there = versions
    with pytest.raises(ValueError, match="has no DaemonSet"):
        convert(manifest(here), there)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


AMOUNTS = st.integers(0, 3) | st.sampled_from(["0%", "10%", "100%"])
ROLLING = maybe(
    rollingUpdateType=st.sampled_from(["Standard", "Surging", "InPlaceIfPossible"]),
    maxUnavailable=AMOUNTS,
    maxSurge=AMOUNTS,
    partition=AMOUNTS,
    paused=st.booleans(),
    selector=st.just({"matchLabels": {"a": "b"}}),
)
ADVANCED_SPEC = maybe(
    updateStrategy=maybe(
        type=st.sampled_from(["RollingUpdate", "OnDelete"]), rollingUpdate=ROLLING
    ),
    burstReplicas=AMOUNTS,
    minReadySeconds=st.integers(0, 5),
    lifecycle=st.just({"preDelete": {"labelsHandler": {"a": "b"}, "markPodNotReady": True}}),
    scaleStrategy=maybe(partitionedScaling=st.booleans()),
)
ANNOTATIONS = st.none() | st.dictionaries(
    st.sampled_from([keys.PROGRESSIVE_CREATE, "mine"]), st.sampled_from(["true", "false"])
)


@given(
    ADVANCED_SPEC,
    ANNOTATIONS,
    st.sampled_from([(keys.V1ALPHA1, keys.V1BETA1), (keys.V1BETA1, keys.V1ALPHA1)]),
)
def test_there_and_back_again_means_the_same(
    spec: Object, annotations: Any, versions: tuple[str, str]
) -> None:
    here, there = versions
    before = manifest(here, **spec)
    if annotations is not None:
        before["metadata"]["annotations"] = annotations
    away = turned(before, there)
    assert meaning(decode_daemonset(away)) == meaning(decode_daemonset(before))
    assert meaning(decode_daemonset(turned(away, here))) == meaning(decode_daemonset(before))


def meaning(daemonset: DaemonSet) -> tuple[object, ...]:
    """All but faults, whose paths may differ, and the annotation that says the same elsewhere."""
    kept = {k: v for k, v in daemonset.metadata.annotations.items() if k == "mine"}
    return (
        kept,
        daemonset.metadata.name,
        daemonset.selector,
        json.loads(daemonset.template),
        daemonset.strategy,
        daemonset.min_ready_seconds,
        daemonset.burst,
        daemonset.history_limit,
        daemonset.pre_delete,
        daemonset.progressive,
    )


@given(SPEC, JSON, JSON, st.sampled_from([keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1]))
def test_no_stored_value_is_too_broken_to_convert(
    spec: Object, metadata: Any, status: Any, version: str
) -> None:
    stored = {"apiVersion": keys.V1BETA1, "metadata": metadata, "spec": spec, "status": status}
    made, lost = convert(stored, version)
    assert made["apiVersion"] == version
    assert version == keys.APPS_V1 or not lost  # the other versions can say everything
