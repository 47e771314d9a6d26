"""Ours answers as a real API server does: the same questions, the same answers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.cluster import questions
from tests.cluster.asking import DEFINITIONS, Cluster
from tests.cluster.questions import Question

from everynode.api.crd import NAME, crd
from everynode.cli.kubernetes import binaries
from everynode.cli.kubernetes.controlplane import ControlPlane, Options
from everynode.clock import SystemClock

pytestmark = pytest.mark.kubernetes

_CLOCK = SystemClock()
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ADDRESS = re.compile(r"\b10\.(?:0|96)\.\d+\.\d+\b")
_AGE = re.compile(r"\d+s")
# What depends on the run, and what the real server was started without.
_LEFT_OUT = ("managedFields", "serviceAccount", "serviceAccountName", "description", "continue")


class Real:
    """A real API server."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self._plane = plane
        self._session = session

    async def ask(self, question: Question) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._plane.token}",
            "Content-Type": question.content_type,
            "Accept": question.accept,
        }
        url = f"{self._plane.url}{question.path}"
        body = encoded(question.body)
        async with self._session.request(
            question.method, url, data=body, headers=headers
        ) as response:
            return response.status, await response.read()


def encoded(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)


@pytest.fixture
async def real() -> AsyncIterator[Real]:
    try:
        binaries.find()
    except binaries.BinariesMissingError as error:
        if os.environ.get("EVERYNODE_REQUIRE_KUBERNETES") == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip("no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS")
    options = Options(controllers=None, scheduler=False)
    async with ControlPlane(options) as plane:
        connector = aiohttp.TCPConnector(ssl=plane.ssl_context())
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Real(plane, session)


def plain(value: Any, key: str = "") -> Any:
    """An answer without what is different in every run."""
    if isinstance(value, dict):
        return {
            name: plain(item, name)
            for name, item in value.items()
            if name not in _LEFT_OUT and item is not None
        }
    if isinstance(value, list):
        items = [plain(item) for item in value]
        # A real server checks some things twice, and says so twice.
        return _unique(items) if key == "causes" else items
    if key == "resourceVersion" and value:
        return "VERSION"
    if isinstance(value, str):
        if _AGE.fullmatch(value):
            return "AGE"
        return _ADDRESS.sub("ADDRESS", _TIME.sub("TIME", _UID.sub("UID", value)))
    return value


def _unique(items: list[Any]) -> list[Any]:
    return [item for index, item in enumerate(items) if item not in items[:index]]


def decoded(raw: bytes) -> Any:
    try:
        return plain(json.loads(raw))
    except ValueError:
        return raw.decode()


async def differences(real: Real, asked: Sequence[Question]) -> list[str]:
    cluster = Cluster()
    space = f"ns{_CLOCK.name_suffix()}"
    found = []
    for template in asked:
        question = msgspec.json.decode(
            msgspec.json.encode(_texts(template)).replace(b"NS", space.encode())
        )
        now = Question(
            template.method,
            question["path"],
            template.body if isinstance(template.body, bytes) else question["body"],
            template.content_type,
            template.accept,
        )
        status, raw = await real.ask(now)
        cluster.clock.seconds = _CLOCK.now()
        ours = await cluster.ask(
            now.method,
            now.path,
            encoded(now.body),
            content_type=now.content_type,
            accept=now.accept,
        )
        if template.differs:
            same = (status < 400) is (ours.status < 400)
        else:
            same = (status, decoded(raw)) == (ours.status, decoded(ours.raw))
        if not same:
            theirs = f"{status} {decoded(raw)}"
            found.append(f"{now}\n  real: {theirs}\n  ours: {ours.status} {decoded(ours.raw)}")
    return found


def _texts(question: Question) -> dict[str, Any]:
    body = None if isinstance(question.body, bytes) else question.body
    return {"path": question.path, "body": body}


NAMESPACE = Question("POST", "/api/v1/namespaces", {"metadata": {"name": "NS"}})


@pytest.mark.timeout(300)
async def test_built_in_kinds_are_answered_alike(real: Real) -> None:
    found = []
    for asked in (
        [*questions.NEW_PODS, *questions.CHANGED_PODS, *questions.DELETED_PODS],
        questions.DAEMONSETS,
        questions.STORED,
    ):
        found += await differences(real, [NAMESPACE, *asked])
    assert not found, "\n\n".join(found)


@pytest.mark.timeout(300)
async def test_advanced_daemonsets_are_answered_alike(real: Real) -> None:
    path = f"{DEFINITIONS}/{NAME}?fieldManager=test"
    install = Question("PATCH", path, crd(), "application/apply-patch+yaml")
    assert (await real.ask(install))[0] == 201
    while (await real.ask(Question("GET", questions.ADVANCED)))[0] != 200:
        await _CLOCK.sleep(0.2)
    found = await differences(real, [NAMESPACE, *questions.ADVANCED_SETS])
    assert not found, "\n\n".join(found)
