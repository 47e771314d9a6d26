"""Three programs agree on manifests: our validation, the embedded server and a real server."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.validation import validate_daemonset, validate_pod
from everynode.apiserver.verbs.dispatch import Api
from everynode.clock import SystemClock
from everynode.kube.requests import Request
from tests.support.manifest_corpus import (
    INVALID,
    INVALID_PODS,
    VALID,
    VALID_PODS,
    Case,
    daemonset,
    rolling,
    template,
)
from tests.support.real_server import Answer, RealApiServer, collection

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

Object = dict[str, Any]


@pytest.fixture(scope="session")
def embedded() -> Api:
    """Our server, which has the definition from the beginning."""
    return Api(clock=SystemClock())


def try_out(api: Api, manifest: Object) -> Answer:
    """What creating this would lead to; nothing is kept."""
    query, body = (("dryRun", "All"),), msgspec.json.encode(manifest)
    asked = Request("POST", collection(manifest), query, body)
    answer = asyncio.run(api.handle(asked))
    return Answer(answer.status, msgspec.json.decode(answer.body))


def validate(case: Case) -> set[tuple[str, str, str]]:
    """Everything our own validation says, as the causes of a Status."""
    validate = validate_pod if case.manifest["kind"] == "Pod" else validate_daemonset
    return {(fault.path, fault.reason, fault.message) for fault in validate(case.manifest)}


@pytest.mark.parametrize("case", VALID + VALID_PODS, ids=repr)
def test_what_one_accepts_all_accept(installed: RealApiServer, embedded: Api, case: Case) -> None:
    assert validate(case) == set()
    for answer in (installed.try_out(case.manifest), try_out(embedded, case.manifest)):
        assert answer.code == 201, answer.body["message"]


@pytest.mark.parametrize("case", INVALID + INVALID_PODS, ids=repr)
def test_what_one_refuses_all_refuse_in_the_same_words(
    installed: RealApiServer, embedded: Api, case: Case
) -> None:
    real, ours = installed.try_out(case.manifest), try_out(embedded, case.manifest)
    assert ours.code == real.code
    if case.only_by_us:
        assert real.code == 201
        assert validate(case)
    elif case.undecodable:
        assert real.code == 400
    else:
        assert real.code == 422
        assert validate(case) == real.causes == ours.causes


def test_the_api_server_fills_in_the_defaults_and_nothing_else(installed: RealApiServer) -> None:
    spec = installed.try_out(daemonset(keys.V1ALPHA1)).body["spec"]
    assert spec == daemonset(keys.V1ALPHA1)["spec"] | {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": 0, "paused": False},
        },
        "burstReplicas": 250,
        "revisionHistoryLimit": 10,
    }


def test_a_new_object_is_born_with_a_status_that_observed_nothing(
    installed: RealApiServer, embedded: Api
) -> None:
    """So that kstatus (Flux, Helm) does not take an object that no controller saw for done."""
    sent = daemonset(keys.V1BETA1) | {"status": {"observedGeneration": 7}}
    real, ours = installed.try_out(sent).body, try_out(embedded, sent).body
    assert real["status"]["observedGeneration"] == -1
    assert real["status"] == ours["status"]
    assert set(real["status"].values()) == {0, -1}


def test_what_one_version_writes_the_other_reads(installed: RealApiServer) -> None:
    made = daemonset(
        keys.V1ALPHA1, metadata={"name": "versions"}, **rolling(type="Surging", maxSurge="30%")
    )
    here = "/apis/apps.kruise.io/{}/namespaces/default/daemonsets/versions"
    assert installed.ask("POST", here.format("v1alpha1").rpartition("/")[0], made).code == 201
    newer = installed.ask("GET", here.format("v1beta1")).body
    assert newer["spec"]["updateStrategy"]["rollingUpdate"] == {
        "type": "Surging",
        "maxSurge": "30%",
        "partition": 0,
        "paused": False,
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


@pytest.mark.parametrize("version", [keys.APPS_V1, keys.V1ALPHA1, keys.V1BETA1])
def test_the_api_server_never_lets_the_selector_change(
    installed: RealApiServer, version: str
) -> None:
    name = f"fixed-{version.rpartition('/')[2]}"
    place = f"/apis/{version}/namespaces/default/daemonsets"
    created = installed.ask("POST", place, daemonset(version, metadata={"name": name})).body
    created["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    answer = installed.ask("PUT", f"{place}/{name}", created)
    assert answer.code == 422
    ((field, _, message),) = answer.causes
    assert field == "spec.selector"
    assert message.endswith("field is immutable")


def test_a_misspelt_field_is_reported_where_all_fields_are_known(installed: RealApiServer) -> None:
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
