from __future__ import annotations

import pytest

from everynode.kube.errors import Forbidden, RequestInfo
from everynode.kube.permissions import (
    Permission,
    is_allowed,
    missing_permission,
    missing_permissions,
)
from tests.support.install_cluster import Served

ASKED = RequestInfo(
    verb="patch", resource="clusterroles.rbac.authorization.k8s.io", name="everynode"
)


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        (Permission(verb="watch", group="", resource="nodes"), "watch nodes"),
        (
            Permission(verb="patch", group="apps", resource="daemonsets/status", namespace="web"),
            "patch daemonsets.apps/status in namespace web",
        ),
    ],
)
def test_a_permission_is_written_as_a_role_has_it(permission: Permission, words: str) -> None:
    assert str(permission) == words


async def test_a_server_is_asked_what_it_would_allow() -> None:
    # The embedded cluster has one user, who may do everything.
    permission = Permission(verb="patch", group="", resource="pods/status", namespace="default")
    assert await is_allowed(Served().client, permission)


@pytest.mark.parametrize(
    ("refused", "missing"),
    [
        (
            'create resource "clusterroles" in API group "rbac.authorization.k8s.io"',
            "create clusterroles.rbac.authorization.k8s.io",
        ),
        (
            'patch resource "pods/status" in API group "" in the namespace "web"',
            "patch pods/status in namespace web",
        ),
        (
            'patch resource "daemonsets/status" in API group "apps" in the namespace "web"',
            "patch daemonsets.apps/status in namespace web",
        ),
        (
            'get resource "namespaces" in API group "" in the namespace "web"',
            "get namespaces",
        ),
    ],
)
def test_a_missing_permission_is_named_as_a_role_would(refused: str, missing: str) -> None:
    message = f'some "thing" is forbidden: User "eve" cannot {refused}'
    assert missing_permission(Forbidden(message, status=403, request_info=ASKED)) == missing


def test_a_refusal_in_other_words_is_named_by_what_was_asked() -> None:
    assert missing_permission(Forbidden("no", status=403, request_info=ASKED)) == str(ASKED)


def test_missing_rights_are_one_line_that_names_the_administrator_to_ask() -> None:
    said = str(missing_permissions(["list nodes", "create pods"]))
    assert said.startswith("you lack the permission to list nodes, create pods; ask a cluster")
