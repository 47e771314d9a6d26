"""Rights of viewers, by what an API server answers to reviews."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.dashboard.access import ReviewedRights, bearer
from everynode.dashboard.guard import Refusal
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from tests.support.samples import advanced, template
from tests.support.scripted_server import ManualClock

USER = {"username": "ada", "groups": ["team"], "uid": "7", "extra": {"scope": ["a"]}}
SIGNED_IN = {"Authorization": "Bearer good"}


class Reviews:
    """An API server that knows one token, and some rights of its user."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[dict[str, Any]] = []
        self.clock = ManualClock()
        client = Client(self, self.clock)  # type: ignore[arg-type]
        self.rights = ReviewedRights(client, self.clock, [Flavour.ADVANCED])

    async def send(self, request: Request) -> Response:
        body = json.loads(request.body or b"{}")
        self.asked.append(body["spec"])
        if body["kind"] == "TokenReview":
            good = body["spec"]["token"] == "good"
            status: dict[str, Any] = {"authenticated": good} | ({"user": USER} if good else {})
        else:
            wanted = body["spec"]["resourceAttributes"]
            group = f".{wanted['group']}" if "group" in wanted else ""
            text = f"{wanted['verb']} {wanted['resource']}{group} {wanted.get('namespace', '*')}"
            status = {"allowed": text in self.allowed}
        return Response(201, json.dumps({**body, "status": status}).encode())


def set_in(namespace: str) -> DaemonSet:
    meta = msgspec.structs.replace(advanced(template()).metadata, namespace=namespace)
    return msgspec.structs.replace(advanced(template()), metadata=meta)


SETS = [set_in("one"), set_in("two")]
ONE = (
    "list daemonsets.apps.kruise.io one",
    "get daemonsets.apps.kruise.io one",
    "list pods one",
    "list controllerrevisions.apps one",
    "list nodes *",
)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer bad"},
        {"Authorization": "Basic good"},
        {"Authorization": f"Bearer {'x' * 20_000}"},
        {"Authorization": "Bearer \udcff"},  # a byte that is no UTF-8, as aiohttp delivers it
    ],
)
async def test_without_a_valid_token_is_401(headers: Mapping[str, str]) -> None:
    with pytest.raises(Refusal) as refused:
        await Reviews(*ONE).rights.viewer(headers)
    assert refused.value.status == 401
    assert "kubectl create token" in refused.value.help


async def test_a_user_sees_the_namespaces_in_which_they_may_list() -> None:
    viewer = await Reviews(*ONE).rights.viewer(SIGNED_IN)
    assert [ds.namespace for ds in await viewer.visible(SETS)] == ["one"]
    everywhere = await Reviews("list daemonsets.apps.kruise.io *").rights.viewer(SIGNED_IN)
    assert len(await everywhere.visible(SETS)) == 2


async def test_a_user_without_rights_is_told_which_are_missing() -> None:
    viewer = await Reviews().rights.viewer(SIGNED_IN)
    with pytest.raises(Refusal) as refused:
        await viewer.visible(SETS)
    assert refused.value.status == 403
    assert "list daemonsets.apps.kruise.io" in refused.value.help
    with pytest.raises(Refusal) as refused:
        await viewer.check(Flavour.ADVANCED, "one", "agent")
    assert refused.value.status == 403
    assert refused.value.error == (
        "user ada lacks the right to get daemonsets.apps.kruise.io in namespace one, "
        "list pods in namespace one, list controllerrevisions.apps in namespace one, list nodes"
    )
    assert await viewer.missing_for_events("one") == "list events in namespace one"


async def test_a_user_with_all_rights_is_asked_about_as_the_token_says() -> None:
    reviews = Reviews(*ONE)
    viewer = await reviews.rights.viewer(SIGNED_IN)
    await viewer.check(Flavour.ADVANCED, "one", "agent")
    spec = reviews.asked[1]
    assert (spec["user"], spec["groups"], spec["uid"]) == ("ada", ["team"], "7")
    assert spec["extra"] == {"scope": ["a"]}
    assert spec["resourceAttributes"]["name"] == "agent"


async def test_answers_are_used_again_for_a_minute() -> None:
    reviews = Reviews(*ONE)
    for _ in range(2):
        viewer = await reviews.rights.viewer(SIGNED_IN)
        await viewer.check(Flavour.ADVANCED, "one", "agent")
    asked = len(reviews.asked)
    reviews.allowed.clear()
    await reviews.clock.advance(61)
    viewer = await reviews.rights.viewer(SIGNED_IN)
    with pytest.raises(Refusal):
        await viewer.check(Flavour.ADVANCED, "one", "agent")
    assert asked == 5
    assert len(reviews.asked) == 10


def test_a_token_is_taken_from_the_header_alone() -> None:
    assert bearer({"Authorization": "bearer  abc "}) == "abc"
    assert bearer({"authorization-other": "Bearer abc"}) == ""
