"""Which error each response of a server is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.kube import errors, verbs
from everynode.kube.requests import Request, Response
from everynode.kube.resources import ADVANCED, DAEMONSETS, NODES, PODS
from everynode.kube.transport import TransportError
from tests.support.scripted_server import failure, status

READ = verbs.get(PODS, "p", namespace="n")
WRITE = verbs.create(PODS, {}, namespace="n")
TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "message": "n is being terminated"}]}
RBAC = 'pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace'
QUOTA = 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
POLICY = 'pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged'
WEBHOOK = 'admission webhook "w.example.com" denied the request: no'
HOOK_DOWN = 'Internal error occurred: failed calling webhook "w.example.com": context deadline'


@pytest.mark.parametrize(
    ("request_", "response", "meaning"),
    [
        (READ, failure(401, "Unauthorized", "Unauthorized"), errors.Unauthorized),
        (WRITE, failure(403, "Forbidden", RBAC, kind="pods"), errors.Forbidden),
        (WRITE, Response(403, b"Forbidden"), errors.Forbidden),
        (WRITE, failure(403, "Forbidden", "x", **TERMINATING), errors.NamespaceTerminating),
        (WRITE, failure(403, "Forbidden", QUOTA, kind="pods"), errors.QuotaExceeded),
        (WRITE, failure(403, "Forbidden", POLICY, kind="pods"), errors.Denied),
        (WRITE, failure(403, "Forbidden", WEBHOOK), errors.Denied),
        (WRITE, failure(400, "BadRequest", WEBHOOK), errors.Denied),
        (WRITE, failure(500, "InternalError", HOOK_DOWN), errors.Denied),
        (READ, failure(404, "NotFound", 'pods "p" not found', kind="pods"), errors.NotFound),
        (READ, Response(404, b"404 page not found\n"), errors.NotServed),
        (WRITE, failure(409, "AlreadyExists", "x", kind="pods"), errors.AlreadyExists),
        (WRITE, failure(409, "Conflict", "x", kind="pods"), errors.Conflict),
        (READ, failure(410, "Expired", "too old"), errors.Gone),
        (WRITE, failure(413, "RequestEntityTooLarge", "x"), errors.Invalid),
        (WRITE, failure(422, "Invalid", "x", kind="Pod"), errors.Invalid),
        (WRITE, failure(422, "Invalid", "x", causes=[{"field": "metadata.uid"}]), errors.Conflict),
        (READ, failure(429, "TooManyRequests", "x"), errors.TooManyRequests),
        (READ, failure(500, "InternalError", "x"), errors.Unavailable),
        (READ, failure(504, "Timeout", "Too large resource version"), errors.Unavailable),
        (WRITE, failure(500, "InternalError", "etcd timed out"), errors.UnknownOutcome),
        (WRITE, failure(504, "Timeout", "request did not complete"), errors.UnknownOutcome),
        (WRITE, failure(503, "ServiceUnavailable", "x"), errors.Unavailable),
        (WRITE, Response(503, b"upstream connect error"), errors.UnknownOutcome),
        (WRITE, Response(502, b"<html>"), errors.UnknownOutcome),
        (READ, Response(502, b"\xff\xfe"), errors.Unavailable),
    ],
)
def test_answers_by_their_meaning(
    request_: Request, response: Response, meaning: type[errors.KubeError]
) -> None:
    assert type(errors.from_response(request_, response)) is meaning


@pytest.mark.parametrize(
    ("request_", "sent", "meaning"),
    [
        (READ, True, errors.Unavailable),
        (READ, False, errors.Unavailable),
        (WRITE, False, errors.Unavailable),
        (WRITE, True, errors.UnknownOutcome),
    ],
)
def test_answers_that_never_came(
    *, request_: Request, sent: bool, meaning: type[errors.KubeError]
) -> None:
    error = errors.from_transport(request_, TransportError("connection reset", sent=sent))
    assert type(error) is meaning


@pytest.mark.parametrize(
    ("response", "seconds"),
    [
        (Response(429, b"", {"retry-after": "3"}), 3.0),
        (failure(429, "TooManyRequests", "x", retryAfterSeconds=10), 10.0),
        (Response(429, b"", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), None),
        (Response(429), None),
    ],
)
def test_when_to_come_back(response: Response, seconds: float | None) -> None:
    assert errors.from_response(READ, response).retry_after == seconds


def test_error_event_of_a_watch_is_understood() -> None:
    body = json.dumps(status(410, "Expired", "too old resource version: 1 (9)")).encode()
    error = errors.from_status(READ, body)
    assert isinstance(error, errors.Gone)
    assert error.message == "too old resource version: 1 (9)"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (verbs.list_page(NODES), "list nodes"),
        (verbs.watch(PODS, version="1", seconds=300), "watch pods"),
        (verbs.get(PODS, "p", namespace="n"), "get pods p in namespace n"),
        (verbs.create(PODS, {}, namespace="n"), "create pods in namespace n"),
        (
            verbs.patch(PODS, "p", {}, namespace="n", subresource="status"),
            "patch pods/status p in namespace n",
        ),
        (
            verbs.replace(ADVANCED, "d", {}, namespace="n", subresource="status"),
            "update daemonsets.apps.kruise.io/status d in namespace n",
        ),
        (
            verbs.delete(DAEMONSETS, "d", namespace="n"),
            "delete daemonsets.apps d in namespace n",
        ),
        (Request("GET", "/version"), "get /version"),
    ],
)
def test_requests_are_described_in_the_words_of_rbac(request_: Request, words: str) -> None:
    assert str(errors.describe(request_)) == words


def test_a_missing_permission_names_verb_and_resource_in_one_line() -> None:
    error = errors.from_response(WRITE, failure(403, "Forbidden", RBAC, kind="pods"))
    assert str(error) == f"cannot create pods in namespace n: {RBAC}"


def test_a_kind_that_is_not_served_is_named() -> None:
    request = verbs.list_page(ADVANCED)
    error = errors.from_response(request, Response(404, b"404 page not found"))
    assert str(error) == (
        "cannot list daemonsets.apps.kruise.io: the server does not know daemonsets.apps.kruise.io"
    )


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"code": "x"}', b"\x00\xff"])
def test_nonsense_in_place_of_a_status_is_survived(body: bytes) -> None:
    error: Any = errors.from_response(READ, Response(500, body))
    assert isinstance(error, errors.Unavailable)
    assert "HTTP 500" in str(error)
