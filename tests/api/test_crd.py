from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.api.corpus import (
    INVALID,
    INVALID_PODS,
    VALID,
    VALID_PODS,
    Case,
    daemonset,
    rolling,
    template,
)

from everynode.api import keys
from everynode.api.crd import NAME, crd, schema
from everynode.api.validation import validate_daemonset, validate_pod
from everynode.api.validation.advanced import RULES

if TYPE_CHECKING:
    from tests.api.conftest import Judge

Object = dict[str, Any]


def at(*names: str) -> Object:
    found = schema()
    for name in names:
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


def test_both_versions_are_served_and_the_newer_one_is_stored() -> None:
    versions = {each["name"]: each for each in crd()["spec"]["versions"]}
    assert set(versions) == {"v1alpha1", "v1beta1"}
    assert all(each["served"] for each in versions.values())
    assert not versions["v1alpha1"]["storage"]
    assert versions["v1beta1"]["storage"]
    assert versions["v1alpha1"]["schema"] == versions["v1beta1"]["schema"]
    assert crd()["spec"]["conversion"] == {"strategy": "None"}


def test_names_and_columns_are_those_that_people_know() -> None:
    assert crd()["metadata"]["name"] == NAME == "daemonsets.apps.kruise.io"
    assert crd()["spec"]["names"]["shortNames"] == ["daemon", "ads"]
    columns = crd()["spec"]["versions"][1]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == [
        *("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"),
        *("CONTAINERS", "IMAGES"),
    ]


def test_each_version_has_the_fields_of_the_other() -> None:
    assert {"rollingUpdateType", "type"} <= set(
        at("spec", "updateStrategy", "rollingUpdate")["properties"]
    )
    assert "scaleStrategy" in at("spec")["properties"]
    assert {"updateRevision", "daemonSetHash"} <= set(at("status")["properties"])


def test_defaults_depend_on_nothing_else() -> None:
    assert at("spec", "updateStrategy")["default"] == {}
    assert at("spec", "updateStrategy", "type")["default"] == "RollingUpdate"
    assert at("spec", "burstReplicas")["default"] == 250
    assert at("spec", "revisionHistoryLimit")["default"] == 10
    for name in ("maxUnavailable", "maxSurge", "rollingUpdateType"):
        assert "default" not in at("spec", "updateStrategy", "rollingUpdate", name)


def test_every_rule_is_in_the_schema_at_its_place() -> None:
    for rule in RULES:
        told = at(*rule.at)["x-kubernetes-validations"]
        assert any(each["rule"] == rule.cel and each["message"] == rule.message for each in told)


def test_the_template_has_known_fields_and_room_for_others() -> None:
    container = at("spec", "template", "spec", "containers", "[]")
    assert container["properties"]["image"] == {"type": "string"}
    assert container["x-kubernetes-preserve-unknown-fields"] is True
    assert "volumeMounts" in container["properties"]


def test_every_own_field_says_what_it_is_for() -> None:
    own = [at("spec"), at("spec", "updateStrategy"), at("spec", "updateStrategy", "rollingUpdate")]
    for part in own:
        assert all(field.get("description") for field in part["properties"].values())


def test_the_definition_is_small_enough_to_be_applied() -> None:
    # kubectl apply keeps a copy in an annotation, and 256 KiB are all that annotations may have.
    assert len(json.dumps(crd())) < 200_000


# --- The real API server is the judge ----------------------------------------------------------


@pytest.fixture(scope="session")
def installed(judge: Judge) -> Judge:
    """The judge, with the definition installed."""
    answer = judge.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
    assert answer.code == 201, answer.body["message"]
    settled(lambda: judge.try_out(daemonset(keys.V1ALPHA1)).code == 201)
    settled(lambda: judge.try_out(daemonset(keys.V1BETA1)).code == 201)
    return judge


def settled(reached: Callable[[], bool]) -> None:
    """Ask again until the server serves the new kind, which takes it a moment."""
    assert any(reached() for _ in range(3000))


def validate(case: Case) -> set[tuple[str, str, str]]:
    """Everything our own validation says, as the causes of a Status."""
    judged = validate_pod if case.manifest["kind"] == "Pod" else validate_daemonset
    return {(fault.path, fault.reason, fault.message) for fault in judged(case.manifest)}


@pytest.mark.kubernetes
@pytest.mark.parametrize("case", VALID + VALID_PODS, ids=repr)
def test_the_api_server_accepts_what_we_accept(installed: Judge, case: Case) -> None:
    assert validate(case) == set()
    answer = installed.try_out(case.manifest)
    assert answer.code == 201, answer.body["message"]


@pytest.mark.kubernetes
@pytest.mark.parametrize("case", INVALID + INVALID_PODS, ids=repr)
def test_the_api_server_refuses_what_we_refuse_in_the_same_words(
    installed: Judge, case: Case
) -> None:
    answer = installed.try_out(case.manifest)
    if case.only_by_us:
        assert answer.code == 201
    elif case.undecodable:
        assert answer.code == 400
    else:
        assert answer.code == 422
        assert validate(case) == answer.causes


@pytest.mark.kubernetes
def test_the_api_server_fills_in_the_defaults_and_nothing_else(installed: Judge) -> None:
    spec = installed.try_out(daemonset(keys.V1ALPHA1)).body["spec"]
    assert spec == daemonset(keys.V1ALPHA1)["spec"] | {
        "updateStrategy": {"type": "RollingUpdate"},
        "burstReplicas": 250,
        "revisionHistoryLimit": 10,
    }


@pytest.mark.kubernetes
def test_what_one_version_writes_the_other_reads(installed: Judge) -> None:
    made = daemonset(
        keys.V1ALPHA1, metadata={"name": "versions"}, **rolling(type="Surging", maxSurge="30%")
    )
    here = "/apis/apps.kruise.io/{}/namespaces/default/daemonsets/versions"
    assert installed.ask("POST", here.format("v1alpha1").rpartition("/")[0], made).code == 201
    newer = installed.ask("GET", here.format("v1beta1")).body
    assert newer["spec"]["updateStrategy"]["rollingUpdate"] == {
        "type": "Surging",
        "maxSurge": "30%",
    }
    counters = dict.fromkeys(
        (
            *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled"),
            *("numberReady", "updatedNumberScheduled"),
        ),
        0,
    )
    newer["status"] = counters | {"updateRevision": "v-1", "daemonSetHash": "v-1"}
    written = installed.ask("PUT", here.format("v1beta1") + "/status", newer)
    assert written.code == 200, written.body
    older = installed.ask("GET", here.format("v1alpha1")).body
    assert older["status"]["daemonSetHash"] == older["status"]["updateRevision"] == "v-1"


@pytest.mark.kubernetes
@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1])
def test_the_api_server_never_lets_the_selector_change(installed: Judge, version: str) -> None:
    name = f"fixed-{version.rpartition('/')[2]}"
    place = f"/apis/{version}/namespaces/default/daemonsets"
    created = installed.ask("POST", place, daemonset(version, metadata={"name": name})).body
    created["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    answer = installed.ask("PUT", f"{place}/{name}", created)
    assert answer.code == 422
    ((field, _, message),) = answer.causes
    assert field == "spec.selector"
    assert message.endswith("field is immutable")


@pytest.mark.kubernetes
def test_a_typing_error_is_told_where_we_know_all_fields(installed: Judge) -> None:
    place = f"/apis/{keys.V1BETA1}/namespaces/default/daemonsets"
    strict = f"{place}?dryRun=All&fieldValidation=Strict"
    typo = daemonset(keys.V1BETA1, **rolling(maxUnavailble=2))
    answer = installed.ask("POST", strict, typo)
    assert answer.code == 400
    assert (
        'unknown field "spec.updateStrategy.rollingUpdate.maxUnavailble"' in answer.body["message"]
    )
    newer = daemonset(keys.V1BETA1, template=template({"newer": 1}))
    assert installed.ask("POST", strict, newer).code == 201
