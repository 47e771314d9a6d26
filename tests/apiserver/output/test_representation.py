from __future__ import annotations

from everynode.apiserver.storage.store import Store
from tests.support.api_client import (
    DEFINITIONS,
    MAPS,
    PODS,
    Cluster,
    bound,
    config_map,
    definition,
    pod,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def test_list_is_a_table_for_people(cluster: Cluster) -> None:
    await cluster.create(PODS, bound("p"))
    table = (await cluster.get(PODS, accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"] == str(cluster.api.store.version)
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    [row] = table["rows"]
    assert row["cells"][:3] == ["p", "0/1", "Pending"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "p"


async def test_single_object_is_a_table_of_one_row(cluster: Cluster) -> None:
    made = await cluster.create(PODS, pod("p"))
    table = (await cluster.get(f"{PODS}/p?includeObject=Object", accept=TABLE)).body
    assert len(table["rows"]) == 1
    assert table["rows"][0]["object"] == made


async def test_watched_tables_have_headers_once(cluster: Cluster) -> None:
    watch = await cluster.watch(PODS, accept=TABLE)
    await cluster.create(PODS, pod("a"))
    await cluster.create(PODS, pod("b"))
    (_, first), (_, second) = await watch.event(), await watch.event()
    assert first["columnDefinitions"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"


async def test_error_of_a_watched_table_is_a_status() -> None:
    cluster = Cluster(Store(history_bytes=1_000))
    await cluster.create(MAPS, config_map("a"))
    for number in range(9):
        await cluster.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
    watch = await cluster.watch(f"{MAPS}?resourceVersion=1", accept=TABLE)
    kind, status = await watch.event()
    assert (kind, status["kind"]) == ("ERROR", "Status")


async def test_custom_columns_are_shown(cluster: Cluster) -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    await cluster.create(DEFINITIONS, definition(additionalPrinterColumns=[column]))
    path = "/apis/example.test/v1/namespaces/default/widgets"
    named = {"apiVersion": "example.test/v1", "kind": "Widget"}
    await cluster.create(path, {**named, "metadata": {"name": "w"}, "spec": {"size": 4}})
    table = (await cluster.get(path, accept=TABLE)).body
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 4]


async def test_metadata_alone_is_given_on_request(cluster: Cluster) -> None:
    made = await cluster.create(MAPS, config_map("a", x="1"))
    one = (await cluster.get(f"{MAPS}/a", accept=METADATA)).body
    assert one == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    many = (await cluster.get(MAPS, accept=LIST)).body
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["items"] == [one]
    watch = await cluster.watch(MAPS, accept=METADATA)
    assert await watch.event() == ("ADDED", one)


async def test_form_that_is_not_known_is_not_acceptable(cluster: Cluster) -> None:
    answer = await cluster.get(MAPS, accept="text/html")
    assert (answer.status, answer.body["reason"]) == (406, "NotAcceptable")


async def test_protobuf_first_and_json_second_is_answered_in_json(cluster: Cluster) -> None:
    accept = "application/vnd.kubernetes.protobuf,application/json"
    answer = await cluster.get(MAPS, accept=accept)
    assert answer.body["kind"] == "ConfigMapList"


async def test_watched_table_says_in_a_row_that_everything_was_sent(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("a"))
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = await cluster.watch(f"{PODS}?{query}&includeObject=None", accept=TABLE)
    (_, first), (kind, end) = await watch.event(), await watch.event()
    assert (kind, first["rows"][0]["object"]) == ("BOOKMARK", None)
    [row] = end["rows"]
    assert row["cells"][:3] == ["", "0/0", ""]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_write_is_answered_in_the_form_that_is_wanted(cluster: Cluster) -> None:
    made = (await cluster.ask("POST", MAPS, config_map("a", x="y"), accept=METADATA)).body
    assert (made["kind"], made["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "data" not in made
    gone = (await cluster.ask("DELETE", MAPS, accept=LIST)).body
    assert gone["kind"] == "PartialObjectMetadataList"


async def test_a_write_whose_client_has_gone_is_not_executed(cluster: Cluster) -> None:
    answer = await cluster.ask("POST", MAPS, config_map("a"), accept="text/html")
    assert answer.status == 406
    assert (await cluster.get(MAPS)).names == []
