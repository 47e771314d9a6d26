from __future__ import annotations

import pytest

from everynode.kube.requests import APPLY_PATCH, MERGE_PATCH
from tests.support.api_client import MAPS, Cluster, config_map

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a", x="1")}


async def test_apply_needs_to_know_who_applies(cluster: Cluster) -> None:
    answer = await cluster.patch(f"{MAPS}/a", MANIFEST, APPLY_PATCH)
    assert answer.status == 422
    assert "fieldManager: Required value: is required for apply patch" in answer.message


async def test_force_is_for_apply_alone(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.patch(f"{MAPS}/a?force=true", {}, MERGE_PATCH)
    assert answer.status == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in answer.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": None}, "invalid object type: /v1, Kind="),
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"metadata": {"name": "b"}}, "does not match the name on the URL (a)"),
        (
            {"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}},
            "metadata.managedFields must be nil",
        ),
    ],
)
async def test_what_is_applied_must_be_what_the_address_says(
    cluster: Cluster, change: dict[str, object], words: str
) -> None:
    path = f"{MAPS}/a?fieldManager=me"
    answer = await cluster.patch(path, {**MANIFEST, **change}, APPLY_PATCH)
    assert answer.status == 400
    assert words in answer.message


async def test_apply_takes_yaml(cluster: Cluster) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    answer = await cluster.ask("PATCH", f"{MAPS}/a?fieldManager=me", body, content_type=APPLY_PATCH)
    assert (answer.status, answer.body["data"]) == (201, {"x": "1"})


async def test_applied_version_must_be_the_stored_one(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    old = {**MANIFEST, "metadata": {"name": "a", "resourceVersion": "1"}}
    answer = await cluster.patch(f"{MAPS}/a?fieldManager=me", old, APPLY_PATCH)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


async def test_unknown_field_cannot_be_applied(cluster: Cluster) -> None:
    odd = {**MANIFEST, "odd": 1}
    answer = await cluster.patch(f"{MAPS}/a?fieldManager=me", odd, APPLY_PATCH)
    # The real server also blames itself.
    assert answer.status == 500
    assert ".odd: field not declared in schema" in answer.message


async def test_unknown_field_is_an_error_when_strict(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    path = f"{MAPS}/a?fieldValidation=Strict"
    answer = await cluster.patch(path, {"odd": 1}, MERGE_PATCH)
    assert answer.status == 422
    assert 'strict decoding error: unknown field "odd"' in answer.message


async def test_patch_of_nothing_is_not_found(cluster: Cluster) -> None:
    assert (await cluster.patch(f"{MAPS}/a", {}, MERGE_PATCH)).status == 404


async def test_patch_in_an_unknown_language_is_refused(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    assert (await cluster.patch(f"{MAPS}/a", {}, "application/x-foo")).status == 415
