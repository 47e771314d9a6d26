from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.conversion import convert
from everynode.api.daemonset import DaemonSet
from everynode.api.versions import decode_daemonset
from tests.api.test_versions import JSON, SPEC, manifest

Object = dict[str, Any]


def test_the_newer_version_knows_no_surging() -> None:
    made = manifest(keys.V1ALPHA1, updateStrategy={"rollingUpdate": {"type": "Surging"}})
    assert convert(made, keys.V1BETA1)["spec"]["updateStrategy"]["rollingUpdate"] == {
        "rollingUpdateType": "Standard",
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


def test_progressive_creation_is_a_field_in_one_version_and_an_annotation_in_the_other() -> None:
    older = manifest(keys.V1ALPHA1)
    older["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: "true", "mine": "x"}
    newer = convert(older, keys.V1BETA1)
    assert newer["spec"]["scaleStrategy"] == {"partitionedScaling": True}
    assert newer["metadata"]["annotations"] == {"mine": "x"}
    assert convert(newer, keys.V1ALPHA1) == older


def test_progressive_creation_that_was_turned_off_stays_off() -> None:
    newer = manifest(scaleStrategy={"partitionedScaling": False})
    newer["metadata"]["annotations"] = {keys.PROGRESSIVE_CREATE: "true"}
    older = convert(newer, keys.V1ALPHA1)
    assert keys.PROGRESSIVE_CREATE not in older["metadata"]["annotations"]
    assert not decode_daemonset(older).progressive


def test_a_native_daemonset_moves_without_its_template_generation() -> None:
    native = manifest(keys.APPS_V1)
    native["metadata"]["annotations"] = {keys.TEMPLATE_GENERATION: "3", "mine": "x"}
    moved = convert(native, keys.V1BETA1)
    assert moved["apiVersion"] == keys.V1BETA1
    assert moved["metadata"]["annotations"] == {"mine": "x"}
    assert moved["spec"] == native["spec"]


def test_the_native_kind_takes_only_what_it_can_say() -> None:
    plain = manifest(updateStrategy={"rollingUpdate": {"rollingUpdateType": "Standard"}})
    assert convert(plain, keys.APPS_V1)["spec"]["updateStrategy"]["rollingUpdate"] == {}
    canary = manifest(updateStrategy={"rollingUpdate": {"partition": 3}}, lifecycle={"a": {}})
    with pytest.raises(ValueError, match=r"rollingUpdate\.partition, spec\.lifecycle"):
        convert(canary, keys.APPS_V1)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has no DaemonSet"):
        convert(manifest(), "apps/v2")


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
HASHES = maybe(updateRevision=st.just("a-1"), numberReady=st.integers(0, 3))


@given(
    ADVANCED_SPEC,
    ANNOTATIONS,
    HASHES,
    st.sampled_from([(keys.V1ALPHA1, keys.V1BETA1), (keys.V1BETA1, keys.V1ALPHA1)]),
)
def test_there_and_back_again_means_the_same(
    spec: Object, annotations: Any, status: Object, versions: tuple[str, str]
) -> None:
    here, there = versions
    before = manifest(here, **spec) | {"status": status}
    if annotations is not None:
        before["metadata"]["annotations"] = annotations
    away = convert(before, there)
    assert meaning(decode_daemonset(away)) == meaning(decode_daemonset(before))
    assert meaning(decode_daemonset(convert(away, here))) == meaning(decode_daemonset(before))


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
        daemonset.status,
    )


@given(SPEC, JSON, JSON, st.sampled_from([keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1]))
def test_no_stored_value_is_too_broken_to_convert(
    spec: Object, metadata: Any, status: Any, version: str
) -> None:
    stored = {"apiVersion": keys.V1BETA1, "metadata": metadata, "spec": spec, "status": status}
    try:
        made = convert(stored, version)
    except ValueError:
        assert version == keys.APPS_V1  # the other versions can say everything
    else:
        assert made["apiVersion"] == version
