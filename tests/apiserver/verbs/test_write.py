from __future__ import annotations

import pytest

from everynode.kube.requests import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH
from tests.support.api_client import CORE, LEASES, MAPS, PODS, Cluster, config_map, pod


async def test_new_object_gets_what_only_the_server_can_give(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    meta = made["metadata"]
    assert meta["namespace"] == "default"
    assert meta["uid"].count("-") == 4
    assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert meta["resourceVersion"] == str(cluster.api.store.version)
    assert await cluster.read(f"{MAPS}/a") == made


async def test_a_field_manager_with_control_characters_is_refused(cluster: Cluster) -> None:
    answer = await cluster.post(f"{MAPS}?fieldManager=%00", config_map("a"))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.message == (
        'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "\\x00": '
        "invalid character U+0000 (at position 0)"
    )
    made = await cluster.create(MAPS, config_map("a"))
    answer = await cluster.put(f"{MAPS}/a?fieldManager={'m' * 129}", made)
    assert answer.status == 422
    assert "may not be more than 128 bytes" in answer.message


async def test_name_is_generated_on_request(cluster: Cluster) -> None:
    base = "x" * 100 + "-"
    made = await cluster.create(MAPS, {"metadata": {"generateName": base}})
    assert len(made["metadata"]["name"]) == 63
    assert made["metadata"]["name"].startswith("x" * 58)
    assert made["metadata"]["generateName"] == base


async def test_name_that_is_taken_is_refused(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.post(MAPS, config_map("a"))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'


async def test_name_of_an_object_that_is_being_deleted_is_still_taken(cluster: Cluster) -> None:
    await cluster.create(MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/wait"]}})
    await cluster.delete(f"{MAPS}/a")
    answer = await cluster.post(MAPS, config_map("a"))
    assert answer.message == 'object is being deleted: configmaps "a" already exists'


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            {"metadata": {"name": "a", "namespace": "x"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"metadata": {"name": "a", "resourceVersion": "1"}},
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            {"metadata": {}},
            422,
            (
                'ConfigMap "" is invalid: metadata.name: Required value: '
                "name or generateName is required"
            ),
        ),
        (
            {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}},
            400,
            (
                'ConfigMap in version "v2" cannot be handled as a ConfigMap: '
                'no kind "ConfigMap" is registered for version "v2"'
            ),
        ),
    ],
)
async def test_object_that_cannot_be_created_is_refused_with_the_reason(
    cluster: Cluster, body: dict[str, object], status: int, message: str
) -> None:
    answer = await cluster.post(MAPS, body)
    assert (answer.status, answer.message) == (status, message)


async def test_namespace_must_be_there(cluster: Cluster) -> None:
    answer = await cluster.post(f"{CORE}/namespaces/nope/configmaps", config_map("a"))
    assert (answer.status, answer.message) == (404, 'namespaces "nope" not found')


async def test_namespace_that_ends_takes_nothing_new(cluster: Cluster) -> None:
    await cluster.create(f"{CORE}/namespaces", {"metadata": {"name": "old"}})
    await cluster.delete(f"{CORE}/namespaces/old")
    answer = await cluster.post(f"{CORE}/namespaces/old/configmaps", config_map("a"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_update_with_an_old_version_conflicts(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    await cluster.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    answer = await cluster.put(f"{MAPS}/a", made)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.message


async def test_update_without_a_version_overwrites(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    answer = await cluster.put(f"{MAPS}/a", config_map("a", x="2"))
    assert answer.body["data"] == {"x": "2"}
    for key in ("uid", "creationTimestamp"):
        assert answer.body["metadata"][key] == made["metadata"][key]


async def test_update_of_another_incarnation_conflicts(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.put(f"{MAPS}/a", {"metadata": {"name": "a", "uid": "other"}})
    assert answer.status == 409
    assert "Precondition failed: UID in precondition: other" in answer.message


async def test_lease_is_not_overwritten_unseen(cluster: Cluster) -> None:
    made = await cluster.create(LEASES, {"metadata": {"name": "l"}, "spec": {}})
    blind = await cluster.put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert blind.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified" in blind.message
    made["spec"] = {"holderIdentity": "me"}
    assert (await cluster.put(f"{LEASES}/l", made)).status == 200


async def test_only_some_kinds_are_created_by_an_update(cluster: Cluster) -> None:
    assert (await cluster.put(f"{MAPS}/a", config_map("a"))).status == 404
    answer = await cluster.put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert answer.status == 201


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ({"data": {"x": "2", "y": None}}, "application/merge-patch+json"),
        ({"data": {"x": "2", "y": None}}, STRATEGIC_PATCH),
        (
            [
                {"op": "test", "path": "/data/x", "value": "1"},
                {"op": "replace", "path": "/data/x", "value": "2"},
                {"op": "remove", "path": "/data/y"},
            ],
            JSON_PATCH,
        ),
    ],
)
async def test_patches_of_every_kind_change_what_they_say(
    cluster: Cluster, body: dict[str, object] | list[object], content_type: str
) -> None:
    await cluster.create(MAPS, config_map("a", x="1", y="1", z="1"))
    answer = await cluster.patch(f"{MAPS}/a", body, content_type)
    assert (answer.status, answer.body["data"]) == (200, {"x": "2", "z": "1"})


async def test_patch_runs_against_the_newest_object_unless_it_names_a_version(
    cluster: Cluster,
) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    await cluster.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    assert (await cluster.patch(f"{MAPS}/a", old)).status == 409
    assert (await cluster.patch(f"{MAPS}/a", {"data": {"y": "1"}})).status == 200


async def test_failed_test_of_a_patch_changes_nothing(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a", x="1"))
    answer = await cluster.patch(
        f"{MAPS}/a",
        [
            {"op": "replace", "path": "/data/x", "value": "2"},
            {"op": "test", "path": "/data/x", "value": "9"},
        ],
        JSON_PATCH,
    )
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert (await cluster.read(f"{MAPS}/a"))["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ({"metadata": {"name": "b"}}, 400),
        ({"metadata": {"namespace": "b"}}, 400),
        ({"metadata": {"uid": "b"}}, 422),
        ({"kind": "Secret"}, 422),
    ],
)
async def test_patch_cannot_make_another_object_of_it(
    cluster: Cluster, patch: dict[str, object], status: int
) -> None:
    await cluster.create(MAPS, config_map("a"))
    assert (await cluster.patch(f"{MAPS}/a", patch)).status == status


async def test_apply_creates_and_then_owns_what_it_says(cluster: Cluster) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a", x="1", y="1")}
    path = f"{MAPS}/a?fieldManager=one"
    assert (await cluster.patch(path, manifest, APPLY_PATCH)).status == 201
    manifest["data"] = {"x": "1"}
    second = await cluster.patch(path, manifest, APPLY_PATCH)
    assert second.body["data"] == {"x": "1"}
    other = {**manifest, "data": {"x": "2"}}
    refused = await cluster.patch(f"{MAPS}/a?fieldManager=two", other, APPLY_PATCH)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["details"]["causes"][0]["field"] == ".data.x"
    forced = await cluster.patch(f"{MAPS}/a?fieldManager=two&force=true", other, APPLY_PATCH)
    assert forced.body["data"] == {"x": "2"}


async def test_dry_run_answers_and_keeps_nothing(cluster: Cluster) -> None:
    answer = await cluster.post(f"{MAPS}?dryRun=All", config_map("a"))
    assert answer.status == 201
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await cluster.get(f"{MAPS}/a")).status == 404
    made = await cluster.create(MAPS, config_map("a", x="1"))
    dry = await cluster.patch(f"{MAPS}/a?dryRun=All", {"data": {"x": "2"}})
    assert dry.body["data"] == {"x": "2"}
    assert await cluster.read(f"{MAPS}/a") == made


async def test_dry_run_takes_no_other_value(cluster: Cluster) -> None:
    answer = await cluster.post(f"{MAPS}?dryRun=Some", config_map("a"))
    assert answer.status == 422
    assert 'dryRun: Unsupported value: ["Some"]' in answer.message


async def test_generation_counts_changes_of_the_spec_alone(cluster: Cluster) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": labels, "template": template}
    made = await cluster.create(path, {"metadata": {"name": "d"}, "spec": spec})
    assert made["metadata"]["generation"] == 1
    labelled = await cluster.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
    assert labelled.body["metadata"]["generation"] == 1
    scaled = await cluster.patch(f"{path}/d", {"spec": {"replicas": 3}})
    assert scaled.body["metadata"]["generation"] == 2
    forged = await cluster.patch(f"{path}/d", {"metadata": {"generation": 9}})
    assert forged.body["metadata"]["generation"] == 2


async def test_status_and_spec_are_written_apart(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p"))
    main = await cluster.patch(f"{PODS}/p", {"status": {"phase": "Running"}})
    assert main.body["status"]["phase"] == "Pending"
    status = await cluster.patch(
        f"{PODS}/p/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "n9"}}
    )
    assert status.body["status"]["phase"] == "Running"
    assert "nodeName" not in status.body["spec"]


async def test_last_finalizer_taken_away_ends_a_deleted_object(cluster: Cluster) -> None:
    await cluster.create(MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/wait"]}})
    await cluster.delete(f"{MAPS}/a")
    answer = await cluster.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    assert answer.status == 200
    assert (await cluster.get(f"{MAPS}/a")).status == 404


async def test_no_finalizer_is_added_once_the_end_has_begun(cluster: Cluster) -> None:
    await cluster.create(MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/wait"]}})
    await cluster.delete(f"{MAPS}/a")
    more = {"metadata": {"finalizers": ["x.io/wait", "x.io/more"]}}
    answer = await cluster.patch(f"{MAPS}/a", more)
    assert answer.status == 422
    assert "no new finalizers can be added" in answer.message


async def test_writers_that_name_themselves_own_fields(cluster: Cluster) -> None:
    made = await cluster.create(f"{MAPS}?fieldManager=me", config_map("a", x="1"))
    [entry] = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}


async def test_owners_survive_a_writer_without_a_name(cluster: Cluster) -> None:
    made = await cluster.create(f"{MAPS}?fieldManager=me", config_map("a", x="1"))
    answer = await cluster.put(f"{MAPS}/a", config_map("a", x="1", y="2"))
    assert answer.body["metadata"]["managedFields"] == made["metadata"]["managedFields"]


async def test_version_zero_stands_for_any(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, {**config_map("m"), "metadata": _meta("0")})
    changed = await cluster.put(f"{MAPS}/m", {"metadata": _meta("0"), "data": {"a": "b"}})
    assert (changed.status, changed.body["data"]) == (200, {"a": "b"})
    late = {"metadata": _meta(made["metadata"]["resourceVersion"])}
    assert (await cluster.put(f"{MAPS}/m", late)).status == 409


async def test_version_that_is_no_number_is_refused(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("m"))
    refused = await cluster.put(f"{MAPS}/m", {"metadata": _meta("abc")})
    assert (refused.status, refused.message) == (
        500,
        'strconv.ParseUint: parsing "abc": invalid syntax',
    )


def _meta(version: str) -> dict[str, str]:
    return {"name": "m", "resourceVersion": version}


async def test_a_self_link_is_not_kept(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, {"metadata": {"name": "linked", "selfLink": "/x"}})
    changed = await cluster.patch(f"{MAPS}/linked", {"metadata": {"selfLink": "/x"}})
    assert changed.body == made
    assert "selfLink" not in made["metadata"]
