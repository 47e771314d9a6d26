"""Hostile contents: their cost is bounded, and no half-done write is left."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from everynode.apiserver.apply.field_set import is_field_set
from everynode.apiserver.apply.merge import merge
from everynode.apiserver.output.table.jsonpath import PathError, compile_path
from everynode.apiserver.patches import strategic
from everynode.apiserver.patches.json_patch import (
    MAX_COPIED_BYTES,
    OperationError,
    apply_json_patch,
)
from everynode.apiserver.resources.strategy import ResourceStrategy
from everynode.apiserver.schema.openapi_validation import validate
from everynode.apiserver.schema.type_tree import custom_type_tree
from everynode.kube.requests import JSON_PATCH
from tests.support.api_client import EVENTS, LEASES, MAPS, PODS, Cluster, bound, config_map

OWNER_REFERENCE = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class Text(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Text.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(work: Any) -> int:
    Text.compared = 0
    work()
    return Text.compared


def test_copies_that_double_an_object_end_at_the_limit() -> None:
    document = {"data": {"x": "y" * 1000}}
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{n}"} for n in range(60)]
    with pytest.raises(OperationError, match=f"exceeding the limit {MAX_COPIED_BYTES}"):
        apply_json_patch(document, doubling)
    assert document == {"data": {"x": "y" * 1000}}


def test_a_copy_shares_nothing_with_what_it_was_copied_from() -> None:
    operations = [
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/x", "value": 2},
        {"op": "add", "path": "/a/y", "value": 3},
    ]
    document = {"a": {"x": 1}}
    assert apply_json_patch(document, operations) == {"a": {"x": 1, "y": 3}, "b": {"x": 2}}
    assert document == {"a": {"x": 1}}


async def test_a_patch_with_such_copies_is_refused(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map(a="b" * 1000))
    path = "/metadata/annotations"
    doubling = [{"op": "copy", "from": path, "path": f"{path}/{n}"} for n in range(60)]
    operations = [{"op": "add", "path": path, "value": {"x": "y" * 100}}, *doubling]
    answer = await cluster.patch(f"{MAPS}/m", operations, JSON_PATCH)
    assert answer.status == 422
    assert (await cluster.read(f"{MAPS}/m"))["data"] == {"a": "b" * 1000}


async def test_an_object_larger_than_etcd_takes_is_not_stored(cluster: Cluster) -> None:
    large = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x" * 1_600_000}}
    answer = await cluster.post(LEASES, large)
    assert (answer.status, answer.message) == (500, "etcdserver: request is too large")
    assert (await cluster.get(f"{LEASES}/l")).status == 404
    await cluster.create(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}})
    version = cluster.api.store.version
    grown = await cluster.patch(f"{LEASES}/l", {"spec": large["spec"]})
    assert grown.message == "etcdserver: request is too large"
    assert cluster.api.store.version == version


async def test_config_maps_hold_a_megabyte_at_most(cluster: Cluster) -> None:
    answer = await cluster.post(MAPS, config_map(a="x" * 1_100_000))
    assert answer.status == 422
    assert "Too long: may not be more than 1048576 bytes" in answer.message


@pytest.mark.parametrize("listing", ["set", "map"])
def test_items_of_large_lists_are_not_compared_with_all_others(listing: str) -> None:
    schema: dict[str, Any] = {"type": "array", "x-kubernetes-list-type": listing}
    values: list[Any] = [str(number) for number in range(100_000)]
    if listing == "map":
        schema["x-kubernetes-list-map-keys"] = ["n"]
        values = [{"n": value} for value in values]
    # With a search among all before it for each, this takes longer than a test may.
    assert list(validate(values, schema)) == []
    assert [fault.path for fault in validate([*values, values[0]], schema)] == ["[100000]"]


def test_applied_lists_are_merged_without_searching() -> None:
    items = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    shape = custom_type_tree({"type": "object", "properties": {"l": items}})
    live = [str(number) for number in range(100_000)]
    sent = live[50_000:] + [f"new {number}" for number in range(50_000)]
    # With a search among all others for each, this takes longer than a test may.
    assert merge({"l": live}, {"l": sent}, shape) == {"l": live + sent[50_000:]}


def test_strategic_lists_are_merged_without_searching() -> None:
    def work(size: int) -> int:
        live = [{"uid": Text(number)} for number in range(size)]
        names = [Text(number) for number in range(size, 0, -1)]
        patch = {
            "ownerReferences": [{"uid": name, "name": "x"} for name in names],
            "$setElementOrder/ownerReferences": [{"uid": name} for name in names],
            "$deleteFromPrimitiveList/finalizers": names,
        }
        original = {"ownerReferences": live, "finalizers": [Text(n) for n in range(size)]}
        return comparisons(lambda: strategic.merge(original, patch, OWNER_REFERENCE))

    assert work(2000) < 3 * work(1000)


def test_deleted_items_of_strategic_lists_go_at_once() -> None:
    live = [{"uid": str(number)} for number in range(30_000)]
    patch = {"ownerReferences": [{"uid": str(n), "$patch": "delete"} for n in range(29_999)]}
    made = strategic.merge({"ownerReferences": live}, patch, OWNER_REFERENCE)
    assert made == {"ownerReferences": [{"uid": "29999"}]}


@pytest.mark.parametrize(
    "fields", [{"f:data": 5}, {"f:data": {"f:a": []}}, {"k:{": {}}, {"i:x": {}}, 5]
)
async def test_malformed_managed_fields_are_replaced(cluster: Cluster, fields: Any) -> None:
    assert not is_field_set(fields)
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    sent = config_map(a="b")
    sent["metadata"]["managedFields"] = [{**entry, "fieldsV1": fields}]
    answer = await cluster.post(f"{MAPS}?fieldManager=me", sent)
    assert answer.status == 201
    assert [e["manager"] for e in answer.body["metadata"]["managedFields"]] == ["me"]


@pytest.mark.parametrize("seconds", [2**63 - 1, 10**12, 10**10])
async def test_the_longest_grace_periods_are_taken(cluster: Cluster, seconds: int) -> None:
    await cluster.create(PODS, bound(terminationGracePeriodSeconds=seconds))
    answer = await cluster.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})
    assert answer.status == 200
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == seconds


@pytest.mark.parametrize(
    ("time", "part"),
    [
        ("0000-00-00T00:00:00Z", "month"),
        ("2023-02-29T00:00:00Z", "day"),
        ("2024-01-01T24:00:00Z", "hour"),
        ("2016-12-31T23:59:60Z", "second"),
        ("2024-01-01T00:00:00+99:99", "time zone offset minute"),
    ],
)
async def test_times_that_no_clock_shows_are_refused(
    cluster: Cluster, time: str, part: str
) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    answer = await cluster.post(EVENTS, {**event, "firstTimestamp": time})
    assert answer.status == 400
    assert f'parsing time "{time}": {part} out of range' in answer.message


async def test_leap_days_are_times(cluster: Cluster) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    await cluster.create(EVENTS, {**event, "firstTimestamp": "2024-02-29T00:00:00Z"})


async def test_versions_of_thousands_of_digits_are_out_of_range(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map())
    patch = {"metadata": {"resourceVersion": "9" * 5000}}
    answer = await cluster.patch(f"{MAPS}/m", patch)
    assert answer.message.startswith("strconv.ParseUint: parsing")
    assert answer.message.endswith("value out of range")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MAPS, {"metadata": {"name": "m"}, "binaryData": {"a": "\n" * 300_000 + "!"}}),
        (
            PODS,
            {
                "metadata": {"name": "p"},
                "spec": {
                    "containers": [
                        {"name": "c", "resources": {"limits": {"cpu": "1" * 300_000 + "!"}}}
                    ]
                },
            },
        ),
    ],
)
async def test_texts_that_can_be_read_in_many_ways_are_refused_at_once(
    cluster: Cluster, path: str, body: dict[str, Any]
) -> None:
    assert (await cluster.post(path, body)).status == 400


async def test_numbers_of_thousands_of_digits_are_refused(cluster: Cluster) -> None:
    body = b'{"metadata":{"name":"m"},"x":1' + b"0" * 5000 + b"}"
    assert (await cluster.ask("POST", MAPS, body)).status == 400


@pytest.mark.parametrize(
    "path", [f".a[{'9' * 5000}]", f".a[?(@{' ' * 200_000})]", f"{'[?(@' * 400}"]
)
def test_odd_paths_of_columns_are_refused_or_find_nothing(path: str) -> None:
    with contextlib.suppress(PathError):
        assert compile_path(path)({"a": 1}) == []


async def test_an_unexpected_error_stores_nothing_and_is_logged_in_one_line(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    version = cluster.api.store.version
    monkeypatch.setattr(ResourceStrategy, "admit", fail)
    answer = await cluster.post(MAPS, config_map())
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert cluster.api.store.version == version
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is None
    assert "KeyError: 'odd'" in caplog.records[0].getMessage()
