"""Permissions: access reviews, and the missing permission that an RBAC error names."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Forbidden
from everynode.kube.resources import Resource

_GROUP: Final = "authorization.k8s.io"
_SELF_REVIEWS: Final = Resource(
    _GROUP, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
_REVIEWS: Final = Resource(
    _GROUP, "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
# RBAC's message names the verb; an apply request may lack either patch or create.
_RBAC_MESSAGE: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """One verb on one resource, as a role would grant it."""

    verb: str
    group: str
    resource: str  # with its subresource: pods/status
    namespace: str = ""  # all of them if empty
    name: str = ""

    def __str__(self) -> str:
        plural, slash, subresource = self.resource.partition("/")
        full = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return f"{self.verb} {full}{f' in namespace {self.namespace}' if self.namespace else ''}"


class ServiceAccount(NamedTuple):
    """A service account by namespace and name."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The user that the API server takes its pods for."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> list[str]:
        """The groups of that user."""
        all_accounts = "system:serviceaccounts"
        return [all_accounts, f"{all_accounts}:{self.namespace}", "system:authenticated"]


class User(msgspec.Struct, frozen=True):
    """A user as the API server knows it from a token."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}


async def is_allowed(
    client: Client, permission: Permission, account: ServiceAccount | User | None = None
) -> bool:
    """Ask the server whether we, a service account or a user have a permission."""
    plural, _, subresource = permission.resource.partition("/")
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    reviews = _REVIEWS if account else _SELF_REVIEWS
    subject: dict[str, Any] = {}
    if account:
        subject = {"user": account.user, "groups": list(account.groups)}
    if isinstance(account, User):
        subject |= {"uid": account.uid, "extra": account.extra}
    asked = {key: value for key, value in attributes.items() if value}
    body = {
        "apiVersion": reviews.api_version,
        "kind": reviews.kind,
        "spec": {"resourceAttributes": asked, **subject},
    }
    answer = await client.read(verbs.create(reviews, body), _decode)
    return bool(answer["status"].get("allowed"))


async def review_token(client: Client, token: str) -> User | None:
    """Ask the server whose token this is; None if it is not valid."""
    body = {
        "apiVersion": _TOKEN_REVIEWS.api_version,
        "kind": _TOKEN_REVIEWS.kind,
        "spec": {"token": token},
    }
    status = (await client.read(verbs.create(_TOKEN_REVIEWS, body), _decode)).get("status", {})
    found = status.get("user") or {}
    if not status.get("authenticated") or not found.get("username"):
        return None
    extra = {key: tuple(values) for key, values in (found.get("extra") or {}).items()}
    groups = tuple(found.get("groups") or ())
    return User(found["username"], groups, found.get("uid", ""), extra)


def missing_permission(error: Forbidden) -> str:
    """Return the verb and the resource, as in a role, that a 403 names as missing."""
    found = _RBAC_MESSAGE.search(error.message)
    if found is None:
        return str(error.request_info)
    # For a namespace, RBAC's message names the object itself as its namespace.
    namespace = (found["namespace"] or "") if found["resource"] != "namespaces" else ""
    permission = Permission(
        verb=found["verb"], group=found["group"], resource=found["resource"], namespace=namespace
    )
    return str(permission)


def missing_permissions(missing: list[str]) -> UserError:
    """Return the error that lists the permissions an administrator has to grant."""
    return UserError(
        f"you lack the permission to {', '.join(missing)}; "
        "ask a cluster administrator for it, or choose another --context"
    )
