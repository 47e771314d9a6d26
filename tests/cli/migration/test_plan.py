"""What is done next in each state, and what is refused before anything is changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.daemonset import Flavour
from everynode.api.objects import ControllerRevision
from everynode.cli.migration.plan import (
    MigrationRecord,
    MigrationState,
    MigrationStep,
    check_meaning,
    convert_source,
    next_step,
    revision_for_pods,
)
from everynode.errors import UserError
from tests.support.stage import daemonset

Object = dict[str, Any]
RECORD = MigrationRecord(source_uid="u1", source_generation=1, manifest={}, pods=())


def source(**metadata: Any) -> Object:
    made = daemonset(api_version="apps/v1")
    made["metadata"] |= {"namespace": "default", "uid": "u1", "generation": 1, **metadata}
    made["status"] = {"observedGeneration": 1}
    return made


def state(**fields: Any) -> MigrationState:
    return MigrationState(name="agent", flavour=Flavour.NATIVE, **fields)


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"source": source()}, MigrationStep.STORE_RECORD),
        ({"source": source(), "record": RECORD}, MigrationStep.DELETE_SOURCE),
        ({"source": source(generation=2), "record": RECORD}, MigrationStep.STORE_RECORD),
        ({"source": source(deletionTimestamp="x"), "record": RECORD}, MigrationStep.AWAIT_DELETION),
        ({"record": RECORD}, MigrationStep.CREATE_TARGET),
        ({"target": {}, "record": RECORD}, MigrationStep.AWAIT_ADOPTION),
    ],
)
def test_the_next_step_follows_from_what_is_there(fields: Object, step: MigrationStep) -> None:
    assert next_step(state(**fields)) is step


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "there is no ds/agent"),
        ({"target": {}}, "there is no ds/agent, but there is ads/agent"),
        ({"source": source(), "target": {}}, "there are both ds/agent and ads/agent"),
        ({"source": source(uid="u2"), "record": RECORD}, "kubectl delete configmap everynode-"),
    ],
)
def test_a_person_decides_what_cannot_be_known(fields: Object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        next_step(state(**fields))


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"generation": 2}, "is not complete"),
        ({"deletionTimestamp": "x"}, "is being deleted"),
        (
            {"ownerReferences": [{"controller": True, "kind": "Agent", "name": "a", "uid": "x"}]},
            "belongs to Agent a",
        ),
    ],
)
def test_a_source_that_cannot_be_migrated_now(metadata: Object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        convert_source(state(source=source(**metadata)), drop=False)


def test_lost_fields_need_consent() -> None:
    advanced = daemonset(rolling={"partition": 3})
    advanced["metadata"] |= {"namespace": "default", "uid": "u", "generation": 1}
    advanced["status"] = {"observedGeneration": 1}
    given = MigrationState(name="agent", flavour=Flavour.ADVANCED, source=advanced)
    with pytest.raises(UserError, match=r"--drop leaves out spec.updateStrategy"):
        convert_source(given, drop=False)
    assert convert_source(given, drop=True).made["apiVersion"] == "apps/v1"


def test_another_template_is_not_the_same() -> None:
    given = state(source=source())
    same = convert_source(given, drop=False).made
    same["metadata"] |= {"uid": "t", "generation": 1}
    check_meaning(given, same)
    same["spec"]["template"]["spec"]["hostNetwork"] = True
    same["spec"]["minReadySeconds"] = 5
    with pytest.raises(UserError, match=r"spec.template, spec.minReadySeconds would differ"):
        check_meaning(given, same)


def test_a_native_target_gets_a_revision_that_its_pods_have_already() -> None:
    stored = daemonset(api_version="apps/v1")
    stored["metadata"] |= {"namespace": "default", "uid": "t", "generation": 1}
    pods = [{"uid": "p", "labels": {"controller-revision-hash": "abc"}}]
    made = revision_for_pods(stored, pods, [])
    assert made is not None
    assert made["metadata"]["labels"]["controller-revision-hash"] == "abc"
    same = msgspec.json.decode(msgspec.json.encode(made), type=ControllerRevision)
    assert revision_for_pods(stored, pods, [same]) is None
    assert revision_for_pods(stored, [], []) is None
