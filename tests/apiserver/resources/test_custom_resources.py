from __future__ import annotations

from typing import Any

import pytest

from everynode.api.crd import CRD_NAME, crd
from everynode.kube.requests import STRATEGIC_PATCH
from tests.support.api_client import ADVANCED, DEFINITIONS, Cluster, definition

WIDGETS = "/apis/example.test/v1/namespaces/default/widgets"


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    named = {"apiVersion": "example.test/v1", "kind": "Widget"}
    return {**named, "metadata": {"name": name}, "spec": spec}


async def test_definition_creates_its_addresses_at_once(cluster: Cluster) -> None:
    assert (await cluster.get(WIDGETS)).status == 404
    made = await cluster.create(DEFINITIONS, definition())
    conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["acceptedNames"]["singular"] == "widget"
    listed = await cluster.read(WIDGETS)
    assert (listed["kind"], listed["items"]) == ("WidgetList", [])


async def test_objects_get_defaults_and_lose_what_is_unknown(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition())
    answer = await cluster.post(WIDGETS, widget(size=1, odd=True))
    assert answer.body["spec"] == {"size": 1, "colour": "red"}
    assert 'unknown field \\"spec.odd\\"' in answer.headers["warning"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.size: Required value"),
        ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
        ({"size": "x"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": 1, "colour": "green"}, 'supported values: "red", "blue"'),
    ],
)
async def test_schema_is_law(cluster: Cluster, spec: dict[str, Any], words: str) -> None:
    await cluster.create(DEFINITIONS, definition())
    answer = await cluster.post(WIDGETS, widget(**spec))
    assert answer.status == 422
    assert words in answer.message


async def test_status_and_generation_work_as_for_built_in_kinds(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition())
    made = await cluster.create(WIDGETS, {**widget(size=1), "status": {"phase": "x"}})
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    status = await cluster.patch(f"{WIDGETS}/w/status", {"status": {"phase": "on"}})
    assert status.body["metadata"]["generation"] == 1
    spec = await cluster.patch(f"{WIDGETS}/w", {"spec": {"size": 2}, "status": {"phase": "no"}})
    assert (spec.body["metadata"]["generation"], spec.body["status"]) == (2, {"phase": "on"})


async def test_without_a_status_subresource_the_status_is_content(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition(subresources={}))
    made = await cluster.create(WIDGETS, {**widget(size=1), "status": {"phase": "x"}})
    assert made["status"] == {"phase": "x"}
    changed = await cluster.patch(f"{WIDGETS}/w", {"status": {"phase": "y"}})
    assert changed.body["metadata"]["generation"] == 2
    assert (await cluster.patch(f"{WIDGETS}/w/status", {})).status == 404


async def test_objects_must_say_what_they_are(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition())
    answer = await cluster.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1}})
    assert answer.status == 400
    assert "Object 'Kind' is missing" in answer.message


async def test_custom_kinds_take_no_strategic_patch(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition())
    await cluster.create(WIDGETS, widget(size=1))
    assert (await cluster.patch(f"{WIDGETS}/w", {}, STRATEGIC_PATCH)).status == 415


async def test_other_versions_show_the_stored_object_under_their_name(cluster: Cluster) -> None:
    body = definition()
    [stored] = body["spec"]["versions"]
    body["spec"]["versions"] = [{**stored, "name": "v1beta1", "storage": False}, stored]
    await cluster.create(DEFINITIONS, body)
    made = await cluster.create(WIDGETS, widget(size=1))
    old = await cluster.read(WIDGETS.replace("/v1/", "/v1beta1/") + "/w")
    assert old == {**made, "apiVersion": "example.test/v1beta1"}
    group = await cluster.read("/apis/example.test")
    assert group["preferredVersion"]["version"] == "v1"


async def test_definition_that_goes_takes_its_objects_along(cluster: Cluster) -> None:
    await cluster.create(DEFINITIONS, definition())
    await cluster.create(WIDGETS, widget(size=1))
    watch = await cluster.watch(f"{WIDGETS}?resourceVersion={cluster.api.store.version}")
    await cluster.delete(f"{DEFINITIONS}/widgets.example.test")
    assert await watch.events(1) == [("DELETED", "w")]
    assert (await cluster.get(WIDGETS)).status == 404
    await cluster.create(DEFINITIONS, definition())
    assert (await cluster.get(WIDGETS)).names == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group": "other.test"}, 'must be spec.names.plural+"."+spec.group'),
        ({"scope": "Foo"}, 'Unsupported value: "Foo"'),
        ({"versions": []}, "exactly one version marked as storage version"),
    ],
)
async def test_definition_that_makes_no_sense_is_refused(
    cluster: Cluster, change: dict[str, Any], words: str
) -> None:
    body = definition()
    body["spec"].update(change)
    answer = await cluster.post(DEFINITIONS, body)
    assert answer.status == 422
    assert words in answer.message


async def test_own_definition_is_there_and_may_be_applied_again(cluster: Cluster) -> None:
    before = await cluster.read(f"{DEFINITIONS}/{CRD_NAME}")
    path = f"{DEFINITIONS}/{CRD_NAME}?fieldManager=everynode"
    answer = await cluster.patch(path, crd(), "application/apply-patch+yaml")
    assert answer.status == 200
    assert answer.body["spec"] == before["spec"]
    assert (await cluster.get(ADVANCED)).status == 200


async def test_own_kind_comes_and_goes_with_its_definition(cluster: Cluster) -> None:
    await cluster.delete(f"{DEFINITIONS}/{CRD_NAME}")
    assert (await cluster.get(ADVANCED)).status == 404
    await cluster.create(DEFINITIONS, crd())
    assert (await cluster.get(ADVANCED)).status == 200


async def test_rules_that_are_not_evaluated_are_reported(cluster: Cluster) -> None:
    ruled = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.size < 5"}]}
        },
    }
    plain = await cluster.post(DEFINITIONS, definition())
    assert "warning" not in plain.headers
    made = await cluster.post(
        DEFINITIONS, definition("gadgets", "Gadget", schema={"openAPIV3Schema": ruled})
    )
    assert made.status == 201
    assert "does not evaluate them" in made.headers["warning"]
    path = f"{DEFINITIONS}/gadgets.example.test"
    labelled = await cluster.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert "warning" not in labelled.headers


async def test_a_webhook_that_is_not_called_is_reported(cluster: Cluster) -> None:
    body = definition()
    body["spec"]["conversion"] = {"strategy": "Webhook"}
    made = await cluster.post(DEFINITIONS, body)
    assert "does not call the webhook" in made.headers["warning"]
