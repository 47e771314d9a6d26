from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest

from everynode.apiserver.storage.store import Change, Store
from everynode.apiserver.verbs.dispatch import Api
from everynode.kube.requests import APPLY_PATCH, JSON, STRATEGIC_PATCH, Request
from tests.agreement.corpora import CORPORA
from tests.agreement.question import TABLE
from tests.support.api_client import ADVANCED, CORE, MAPS, PODS, Cluster, StillClock, config_map


class SlowJournal:
    """Keeps nothing until it is told that the disk is done."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.journal = self

    def append(self, collection: str, change: Change) -> None:
        """The disk is slow."""

    async def wait_for_capacity(self) -> None:
        """There is always room."""

    def done(self) -> None:
        self.store.mark_durable(self.store.version)


async def test_health_is_plain_text(cluster: Cluster) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await cluster.get(path)
        assert (answer.status, answer.raw) == (200, b"ok")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{CORE}/pods"),
        ("DELETE", f"{CORE}/pods"),
        ("PUT", PODS),
        ("PATCH", PODS),
        ("POST", f"{PODS}/p"),
        ("DELETE", f"{PODS}/p/status"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
async def test_verb_that_a_resource_does_not_have_is_refused(
    cluster: Cluster, method: str, path: str
) -> None:
    answer = await cluster.ask(method, path, {})
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_cluster_starts_with_the_usual_objects(cluster: Cluster) -> None:
    spaces = await cluster.get(f"{CORE}/namespaces")
    assert spaces.names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    classes = await cluster.get("/apis/scheduling.k8s.io/v1/priorityclasses")
    assert classes.names == ["system-cluster-critical", "system-node-critical"]


async def test_no_watch_shows_a_write_before_it_is_durable() -> None:
    cluster = Cluster()
    journal = SlowJournal(cluster.api.store)
    watch = await cluster.watch(f"{MAPS}?resourceVersion={cluster.api.store.version}")
    writing = asyncio.create_task(cluster.post(MAPS, config_map("a")))
    reading = asyncio.create_task(cluster.get(MAPS))
    seeing = asyncio.create_task(watch.event())
    for _ in range(20):
        await cluster.clock.sleep(0)
    assert not writing.done()
    assert not reading.done()
    assert not seeing.done()
    journal.done()
    assert (await writing).status == 201
    assert (await reading).names == ["a"]
    assert (await seeing)[0] == "ADDED"


async def test_write_that_is_not_kept_in_time_is_answered_with_a_timeout() -> None:
    cluster = Cluster()
    SlowJournal(cluster.api.store)
    answer = await cluster.post(f"{MAPS}?timeout=50ms", config_map("a"))
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")


async def test_write_that_arrives_too_late_is_not_made() -> None:
    clock = StillClock()
    api = Api(clock=clock)
    body = b'{"metadata":{"name":"a"}}'
    request = Request("POST", MAPS, (("timeout", "2s"),), body)
    late = await api.handle(request, arrived=clock.monotonic() - 3)
    assert late.status == 504
    assert (await api.handle(Request("GET", f"{MAPS}/a"))).status == 404
    assert (await api.handle(request, arrived=clock.monotonic() - 1)).status == 201


async def test_broken_disk_stops_everything() -> None:
    cluster = Cluster()
    SlowJournal(cluster.api.store)
    writing = asyncio.create_task(cluster.post(MAPS, config_map("a")))
    for _ in range(5):
        await cluster.clock.sleep(0)
    cluster.api.store.fail(OSError("no space left"))
    answer = await writing
    assert answer.status == 500
    assert "no space left" in answer.message
    assert (await cluster.get(MAPS)).status == 500


JUNK: list[Any] = [None, 0, -1, 1.5, True, "", "-", [], {}, [None], {"a": None}, ["x"], 10**30]
ASKED = [
    question
    for questions in CORPORA.values()
    for question in questions
    if isinstance(question.body, dict | list)
]


def spoilt(value: Any, chance: random.Random) -> Any:
    """The value with something wrong somewhere."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(sorted(value))
        return {**value, key: spoilt(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], spoilt(value[place], chance), *value[place + 1 :]]
    return chance.choice(JUNK)


@pytest.mark.parametrize("seed", range(4))
async def test_no_request_breaks_the_server(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    await cluster.create(f"{CORE}/namespaces", {"metadata": {"name": "ns"}})
    for question in chance.choices(ASKED, k=400):
        body = spoilt(question.body, chance) if chance.random() < 0.7 else question.body
        raw = msgspec.json.encode(body).replace(b"NS", b"ns")
        path = question.path.replace("NS", "ns")
        answer = await cluster.ask(question.method, path, raw, content_type=question.content_type)
        assert b"Internal error occurred" not in answer.raw, (question, raw)
    for path in (f"{CORE}/pods", f"{CORE}/events", f"{CORE}/nodes", "/apis/apps/v1/daemonsets"):
        assert (await cluster.get(path, accept=TABLE)).status == 200


async def test_warning_is_sent_with_a_refusal_too(cluster: Cluster) -> None:
    await cluster.create(MAPS, config_map("a"))
    answer = await cluster.post(MAPS, {**config_map("a"), "odd": 1})
    assert answer.status == 409
    assert answer.headers["warning"] == '299 - "unknown field \\"odd\\""'


@pytest.mark.parametrize("depth", [600, 1100, 5000])
@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", MAPS, "application/yaml"),
        ("POST", ADVANCED, JSON),
        ("PATCH", f"{CORE}/namespaces/default", STRATEGIC_PATCH),
        ("PATCH", f"{MAPS}/x?fieldManager=m", APPLY_PATCH),
    ],
)
async def test_body_that_is_nested_too_deeply_is_a_bad_request(
    cluster: Cluster, method: str, path: str, content_type: str, depth: int
) -> None:
    body = b'{"metadata":{"name":"x"},"spec":' + b'{"a":' * depth + b"1" + b"}" * (depth + 1)
    answer = await cluster.ask(method, path, body, content_type=content_type)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


def test_server_is_made_without_a_loop() -> None:
    assert Api(clock=StillClock()).store.version > 1
