from __future__ import annotations

import json

from everynode.apiserver.storage.store import (
    Record,
    Store,
    decode_record,
    encode_record,
    with_version,
)
from everynode.apiserver.storage.stored_body import StoredBody, in_kubernetes_order


def obj(name: str, namespace: str = "ns", **more: object) -> dict[str, object]:
    return {
        "kind": "Thing",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        **more,
    }


def test_every_write_gets_the_next_version_whatever_the_collection() -> None:
    store = Store()
    things, others = store.collection("things"), store.collection("others")
    first = store.put(things, obj("a"))
    second = store.put(others, obj("a"))
    third = store.put(things, obj("a", spec={}))
    assert [first.version, second.version, third.version] == [2, 3, 4]
    assert json.loads(third.body)["metadata"]["resourceVersion"] == "4"


def test_rewritten_object_gets_the_next_version_and_keeps_its_labels() -> None:
    store = Store()
    things = store.collection("things")
    first = store.put(things, obj("a", status={"x": 1}), fields=("1",))
    body = StoredBody(first.body.replace(b'"x":1', b'"x":2'))
    second = store.replace_body(things, first, body, fields=("2",))
    assert things.get("ns", "a") is second
    assert json.loads(second.body) == {**json.loads(body), "metadata": _version(first, "3")}
    assert (second.version, second.labels, second.fields) == (3, first.labels, ("2",))


def _version(record: Record, version: str) -> object:
    return {**json.loads(record.body)["metadata"], "resourceVersion": version}


def test_removed_object_carries_the_version_of_its_end() -> None:
    store = Store()
    things = store.collection("things")
    record = store.put(things, obj("a"))
    last = store.remove(things, record)
    assert json.loads(last.body)["metadata"]["resourceVersion"] == "3"
    assert things.get("ns", "a") is None


def test_scan_follows_the_order_of_keys_and_keeps_to_its_namespace() -> None:
    store = Store()
    things = store.collection("things")
    for namespace, name in (("a-b", "z"), ("a", "y"), ("a", "x"), ("ab", "w")):
        store.put(things, obj(name, namespace))
    # A slash sorts after a dash, as in the keys of the real server.
    assert [r.key for r in things.scan()] == ["a-b/z", "a/x", "a/y", "ab/w"]
    assert [r.key for r in things.scan("a")] == ["a/x", "a/y"]
    assert [r.key for r in things.scan("a", after="a/x")] == ["a/y"]


def test_pods_are_found_by_their_node_through_every_change() -> None:
    store = Store()
    pods = store.collection("pods")

    def on(node: str, *, after: str = "") -> list[str]:
        return [record.key for record in pods.having(node, after=after) or ()]

    first = store.put(pods, obj("b"), fields=("", "Pending"))
    store.put(pods, obj("a"), fields=("n1", "Running"))
    assert (on(""), on("n1")) == (["ns/b"], ["ns/a"])
    bound = store.put(pods, obj("b"), fields=("n1", "Pending"))
    assert (on(""), on("n1"), on("n1", after="ns/a")) == ([], ["ns/a", "ns/b"], ["ns/b"])
    moved = store.replace_body(pods, bound, bound.body, fields=("n2", "Running"))
    assert (on("n1"), on("n2")) == (["ns/a"], ["ns/b"])
    store.remove(pods, moved)
    assert on("n2") == []
    store.restore(pods, first)
    assert on("") == ["ns/b"]
    assert store.collection("things").having("n1") is None


def test_members_are_written_in_the_order_of_kubernetes() -> None:
    mixed = {
        "status": {},
        "spec": {},
        "metadata": {"labels": {}, "name": "x"},
        "apiVersion": "v1",
        "kind": "K",
    }
    assert list(in_kubernetes_order(mixed)) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert list(in_kubernetes_order(mixed)["metadata"]) == ["name", "labels"]


def test_version_is_found_in_the_bytes_even_when_a_label_looks_like_one() -> None:
    thing = obj("a")
    thing["metadata"]["labels"] = {"resourceVersion": "7"}  # type: ignore[index]
    record = encode_record(thing, 12)
    moved = json.loads(with_version(record, 345).body)
    assert moved["metadata"]["resourceVersion"] == "345"
    assert moved["metadata"]["labels"] == {"resourceVersion": "7"}


def test_record_is_read_back_as_it_was_kept() -> None:
    record = encode_record(obj("a", spec={"x": 1}), 5, fields=("f",))
    again = decode_record(record.body, 5, lambda _: ("f",))
    assert again == record
    assert isinstance(again, Record)


def test_observers_hear_of_changes_at_once() -> None:
    store = Store()
    heard: list[tuple[str, str]] = []
    for _ in range(2):
        store.observe("things", lambda change: heard.append((change.type, change.record.name)))
    things = store.collection("things")
    store.put(store.collection("others"), obj("z"))
    record = store.put(things, obj("a"))
    store.remove(things, record)
    assert heard == [*[("ADDED", "a")] * 2, *[("DELETED", "a")] * 2]
