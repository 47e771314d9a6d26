from __future__ import annotations

import json
from typing import Any

from everynode.api.crd import CRD_NAME, crd, schema
from everynode.api.validation.advanced import RULES

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
    assert crd()["metadata"]["name"] == CRD_NAME == "daemonsets.apps.kruise.io"
    assert crd()["spec"]["names"]["shortNames"] == ["daemon", "ads"]
    columns = crd()["spec"]["versions"][1]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == [
        *("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "STATE", "AGE"),
        *("CONTAINERS", "IMAGES", "REASON"),
    ]
    assert crd()["spec"]["names"]["categories"] == ["all"]  # so that `kubectl get all` lists them


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
    rolling = at("spec", "updateStrategy", "rollingUpdate")
    assert rolling["default"] == {}
    assert rolling["properties"]["partition"]["default"] == 0
    assert rolling["properties"]["paused"]["default"] is False
    for name in ("maxUnavailable", "maxSurge", "rollingUpdateType"):
        assert "default" not in at("spec", "updateStrategy", "rollingUpdate", name)


def test_a_new_object_has_a_status_that_no_tool_takes_for_done() -> None:
    born = at("status")["default"]
    assert born["observedGeneration"] == -1
    assert set(at("status")["required"]) <= set(born)
    for name, value in born.items():
        assert at("status", name)["default"] == value


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
