from __future__ import annotations

from typing import Any

import pytest

from tests.support.api_client import DEFINITIONS, LEASES, Cluster, definition

Object = dict[str, Any]
APPROVED = {"annotations": {"api-approved.kubernetes.io": "unapproved, a test"}}


def with_spec(**more: Any) -> Object:
    made = definition()
    return {**made, "spec": {**made["spec"], **more}}


def for_group(group: str, plural: str = "widgets", **meta: Any) -> Object:
    made = definition(plural)
    spec = {**made["spec"], "group": group}
    return {"metadata": {"name": f"{plural}.{group}", **meta}, "spec": spec}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (definition(name=None), "spec.versions[0].name: Invalid value"),
        (definition(name="v" + "9" * 5000), "must be no more than 63 characters"),
        (with_spec(versions=[None]), "spec.versions[0].schema.openAPIV3Schema: Required value"),
        (with_spec(versions=None), "must have exactly one version marked as storage version"),
        (with_spec(names={"plural": "widgets", "kind": "a b"}), "spec.names.kind: Invalid value"),
        (with_spec(conversion={"strategy": "X"}), "spec.conversion.strategy: Unsupported value"),
        (with_spec(preserveUnknownFields=True), "cannot set to true"),
        (for_group("apps", "daemonsets"), "should be a domain with at least one dot"),
        (for_group("x.k8s.io"), "protected groups must have approval annotation"),
        (definition(subresources={"scale": {}}), "scale.specReplicasPath: Required value"),
        (
            definition(additionalPrinterColumns=[{"name": "a", "type": "x", "jsonPath": "a"}]),
            "JSONPath: Invalid value",
        ),
    ],
)
async def test_what_is_refused_is_not_stored(cluster: Cluster, sent: Object, words: str) -> None:
    answer = await cluster.post(DEFINITIONS, sent)
    assert answer.status == 422, answer.raw
    assert words in answer.message
    assert (await cluster.get(f"{DEFINITIONS}/{sent['metadata']['name']}")).status == 404


async def test_a_definition_neither_replaces_nor_deletes_a_built_in_kind(cluster: Cluster) -> None:
    await cluster.create(LEASES, {"metadata": {"name": "kept"}})
    sent = for_group("coordination.k8s.io", "leases", **APPROVED)
    await cluster.create(DEFINITIONS, sent)
    assert (await cluster.get(LEASES)).names == ["kept"]
    assert (await cluster.post(LEASES, {"metadata": {"name": "another"}})).status == 201
    assert (await cluster.delete(f"{DEFINITIONS}/leases.coordination.k8s.io")).status == 200
    assert (await cluster.get(LEASES)).names == ["another", "kept"]


async def test_a_stored_definition_that_cannot_be_served_is_left_out_and_named(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    store = cluster.api.store
    collection = store.collection("customresourcedefinitions.apiextensions.k8s.io")
    broken = definition()
    broken["metadata"]["uid"] = "u"
    broken["spec"]["versions"] = [5]
    store.put(collection, broken)
    await cluster.create(DEFINITIONS, definition("gadgets", "Gadget"))
    caplog.clear()
    again = Cluster(store)
    assert (await again.get("/apis/example.test/v1/gadgets")).status == 200
    assert (await again.get("/apis/example.test/v1/widgets")).status == 404
    named = [record.getMessage() for record in caplog.records]
    assert len(named) == 1
    assert "widgets.example.test cannot be served" in named[0]
    assert (await again.delete(f"{DEFINITIONS}/widgets.example.test")).status == 200
