from __future__ import annotations

import json

import pytest

from everynode.kube import verbs
from everynode.kube.requests import APPLY_PATCH, STRATEGIC_PATCH, Request
from everynode.kube.resources import NODES, PODS
from everynode.kube.verbs import ListOptions


def test_delete_carries_uid_and_version_as_preconditions() -> None:
    request = verbs.delete(PODS, "p", namespace="n", uid="u", version="7", grace_seconds=0)
    assert (request.method, request.path) == ("DELETE", "/api/v1/namespaces/n/pods/p")
    assert json.loads(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
    }


def test_delete_can_be_tried_dry_and_told_what_becomes_of_dependents() -> None:
    request = verbs.delete(PODS, "p", namespace="n", propagation="Orphan", dry_run=True)
    body = json.loads(request.body)
    assert (body["propagationPolicy"], body["dryRun"]) == ("Orphan", ["All"])
    assert "preconditions" not in body


def test_list_asks_for_the_most_recent_state_in_pages() -> None:
    request = verbs.list_page(
        PODS, options=ListOptions("n", labels="app=x", fields="a=b"), token="t"
    )
    assert request.path == "/api/v1/namespaces/n/pods"
    assert request.query == (
        ("labelSelector", "app=x"),
        ("fieldSelector", "a=b"),
        ("limit", "500"),
        ("continue", "t"),
    )


def test_watch_asks_for_bookmarks() -> None:
    query = dict(verbs.watch(NODES, version="7", seconds=300).query)
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "300",
    }


def test_bytes_are_sent_as_they_are() -> None:
    raw = b'{"b":1,  "a":2}'
    request = verbs.patch(PODS, "p", raw, kind=STRATEGIC_PATCH, namespace="n", manager="everynode")
    assert (request.body, request.content_type) == (raw, STRATEGIC_PATCH)
    assert request.query == (("fieldManager", "everynode"),)


def test_apply_says_who_applies_and_whether_by_force() -> None:
    request = verbs.apply(NODES, "x", {}, manager="everynode", force=True, dry_run=True)
    assert (request.method, request.content_type) == ("PATCH", APPLY_PATCH)
    assert dict(request.query) == {"fieldManager": "everynode", "dryRun": "All", "force": "true"}


@pytest.mark.parametrize(("seconds", "limit"), [(10.0, "10s"), (4.9, "4s"), (0.3, "1s")])
def test_a_limited_write_is_refused_by_the_server_before_we_stop_waiting(
    seconds: float, limit: str
) -> None:
    request = verbs.with_timeout(verbs.create(PODS, {}, namespace="n", manager="m"), seconds)
    assert dict(request.query) == {"fieldManager": "m", "timeout": limit}
    assert request.timeout > int(limit[:-1])
    assert dict(verbs.with_timeout(request, 3).query)["timeout"] == "3s"


@pytest.mark.parametrize(
    ("request_", "write"),
    [
        (verbs.get(NODES, "x"), False),
        (verbs.list_page(NODES), False),
        (verbs.create(PODS, {}, namespace="n"), True),
        (verbs.create(PODS, {}, namespace="n", name="p", subresource="eviction"), True),
        (verbs.replace(NODES, "x", {}, subresource="status"), True),
        (verbs.delete(NODES, "x"), True),
    ],
)
def test_which_requests_are_writes(*, request_: Request, write: bool) -> None:
    assert verbs.is_write(request_) is write
