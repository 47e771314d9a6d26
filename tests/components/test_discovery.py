"""Discovery: which resources a server is found to have."""

from __future__ import annotations

import pytest

from everynode.components.discovery import discover
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.kube.resources import DAEMONSETS, NODES, PODS, REVISIONS
from tests.support.components_cluster import running, virtual
from tests.support.transports import WithoutWatches


class Parrot(WithoutWatches):
    """Answers everything with the same words."""

    def __init__(self, answer: Response) -> None:
        self._answer = answer

    async def send(self, request: Request) -> Response:
        return self._answer


@virtual
async def test_kinds_are_found_as_owner_references_name_them() -> None:
    async with running() as world:
        kinds = await discover(world.ledger)
    assert all(each in kinds.all for each in (PODS, NODES, DAEMONSETS, REVISIONS))
    assert kinds.for_kind("v1", "Pod") == PODS
    assert kinds.for_kind("apps/v1beta9", "DaemonSet") == DAEMONSETS
    assert kinds.for_kind("example.com/v1", "DaemonSet") is None


@virtual
async def test_what_cannot_be_watched_and_deleted_is_left_out() -> None:
    async with running() as world:
        kinds = await discover(world.ledger)
    plurals = [each.plural for each in kinds.all]
    assert "pods" in plurals
    assert "subjectaccessreviews" not in plurals
    assert "bindings" not in plurals
    assert not any("/" in plural for plural in plurals)


async def test_first_version_that_has_a_kind_counts() -> None:
    body = b"""{"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "example.com"},
    "versions": [
        {"version": "v2", "resources": [{"resource": "mills", "responseKind": {"kind": "Mill"},
         "scope": "Namespaced", "verbs": ["list", "watch", "delete"]}]},
        {"version": "v1", "resources": [
         {"resource": "mills", "responseKind": {"kind": "Mill"}, "scope": "Namespaced",
          "verbs": ["list", "watch", "delete"]},
         {"resource": "rivers", "responseKind": {"kind": "River"}, "scope": "Cluster",
          "verbs": ["list", "watch", "delete"]}]}]}]}"""
    kinds = await discover(Parrot(Response(200, body)))
    shown = [(each.version, each.plural, each.kind, each.namespaced) for each in kinds.all]
    assert shown == [("v2", "mills", "Mill", True), ("v1", "rivers", "River", False)]


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b'{"kind": "APIVersions", "versions": ["v1"]}'),
        Response(503, b"not now"),
        Response(200, b"<html>please log in</html>"),
        Response(200, b'{"kind":' + b"[" * 100_000),
    ],
)
async def test_server_that_does_not_say_is_not_taken_for_empty(answer: Response) -> None:
    with pytest.raises(KubeError):
        await discover(Parrot(answer))
