from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.cli.dashboard import command
from everynode.cli.nodes import command as nodes_command
from everynode.dashboard.cells import CellState
from everynode.dashboard.feed import MAX_VIEWERS, Feed
from everynode.dashboard.server import MAX_CONNECTIONS, Dashboard, serve
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, REVISIONS
from tests.cli.conftest import EXPECTED
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed
from tests.support.processes import listening
from tests.support.stage import daemonset

Object = dict[str, Any]


class Viewer:
    """A browser, as far as the server sees it."""

    def __init__(
        self, session: aiohttp.ClientSession, port: int, dashboard: Dashboard, client: Client
    ) -> None:
        self.client = client
        self.session = session
        self.address = f"http://127.0.0.1:{port}"
        self.dashboard = dashboard

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(f"{self.address}{path}", headers=headers) as answer:
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Server"] == "everynode"
            return answer.status, json.loads(await answer.read())

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        url = f"{self.address}{path}"
        async with self.session.post(url, json=body, headers=headers) as answer:
            return answer.status, json.loads(await answer.read())

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Object]]:
        async with self.session.get(f"{self.address}{path}", headers=headers) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            yield _events(answer)


def _states(listed: Object) -> dict[str, str]:
    return {f"{each['kind']}/{each['name']}": each["state"] for each in listed["sets"]}


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    found: Object = {}
    while line := (await answer.content.readline()).decode().rstrip("\n"):
        key, _, value = line.partition(": ")
        found[key] = json.loads(value) if key == "data" else value
        if key == "data":
            await answer.content.readline()
            yield found
            found = {}


@asynccontextmanager
async def viewing(up: Up, *namespaces: str, token: str = "") -> AsyncIterator[Viewer]:
    async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:
        dashboard = Dashboard(
            cluster.client, cluster.clock, cluster="here", namespaces=namespaces, token=token
        )
        async with serve(dashboard, 0) as port, aiohttp.ClientSession() as session:
            yield Viewer(session, port, dashboard, cluster.client)


async def test_the_list_and_the_grid_say_what_the_commands_say(rollouts: Up) -> None:
    async with viewing(rollouts) as viewer:
        async with viewer.stream("/api/sets/stream") as events, asyncio.timeout(60):
            # The controller writes its status a moment after it has decided.
            while _states((await anext(events))["data"]) != EXPECTED:
                pass
        status, listed = await viewer.get("/api/sets")
        assert (status, _states(listed)) == (200, EXPECTED)
        async with viewer.stream("/api/set/ads/default/held/stream") as events:
            first = await anext(events)
            shown = first["data"]
            assert first["event"] == "snapshot"
            assert len(viewer.dashboard.feeds) == 1
            _, table = await viewer.get("/api/set/ads/default/held/nodes")
            _, two = await viewer.get("/api/set/ads/default/held/nodes?at=3,0,99")
        _, one = await viewer.get("/api/set/ads/default/stuck/node/node-0006")
        _, compared = await viewer.get("/api/set/ads/default/held/diff?from=1&to=2")
    printed = await asyncio.to_thread(typed, nodes_command, rollouts, "ads/held", "-o", "json")
    rows = {each["node"]: each for each in json.loads(printed.stdout)["items"]}
    assert shown["nodes"]["names"] == sorted(rows)
    assert {row["node"]: row["reason"] for row in table["rows"]} == {
        name: each["reason"] for name, each in rows.items()
    }
    assert two["rows"] == [table["rows"][3], table["rows"][0]]
    counts = shown["set"]["counts"]
    standings = [each["standing"] for each in rows.values()]
    assert sum(row["state"] == CellState.UPDATED for row in table["rows"]) == standings.count(
        "updated"
    )
    assert counts["desired"] == 5
    assert counts["updated"] == standings.count("updated") == 2
    assert {fact["title"] for fact in one["facts"]} >= {"eligible", "scope", "pod"}
    assert "a:2" in compared["text"]


async def test_a_viewer_that_comes_back_gets_what_it_missed_and_no_snapshot(rollouts: Up) -> None:
    path = "/api/set/ads/default/done/stream"
    async with viewing(rollouts) as viewer:
        async with viewer.stream(path) as events:
            first = await anext(events)
        [watched] = viewer.dashboard.feeds._feeds.values()
        # A change while no viewer is there: the annotation is the cause of revision 1.
        for cause in ("seen by no viewer", None):
            body = {"metadata": {"annotations": {"kubernetes.io/change-cause": cause}}}
            revision = await _first_revision(viewer, "done")
            patch = verbs.patch(REVISIONS, revision, body, namespace="default")
            await viewer.client.write(patch, bytes)
            async with asyncio.timeout(60):
                while (cause or "") not in _causes(watched.feed):
                    await watched.feed._news.wait()
        async with viewer.stream(path, **{"Last-Event-ID": first["id"]}) as events:
            missed = await anext(events)
            assert missed["event"] == "batch"
            assert int(missed["id"]) == int(first["id"]) + 1
        async with viewer.stream(path, **{"Last-Event-ID": "1"}) as events:
            assert (await anext(events))["event"] == "snapshot"
        assert [watched] == list(viewer.dashboard.feeds._feeds.values())
    assert watched.running.cancelled()


async def test_the_last_viewer_ends_the_watch(rollouts: Up) -> None:
    async with viewing(rollouts) as viewer:
        viewer.dashboard.feeds._linger = 0
        async with viewer.stream("/api/set/ads/default/done/stream") as events:
            await anext(events)
            [watched] = viewer.dashboard.feeds._feeds.values()
        await asyncio.wait([watched.running], timeout=60)
        assert watched.running.cancelled()
        assert len(viewer.dashboard.feeds) == 0


def _causes(feed: Feed) -> list[str]:
    assert feed.model is not None
    return [each["cause"] for each in feed.model.set["revisions"]]


async def _first_revision(viewer: Viewer, name: str) -> str:
    listed = await viewer.client.read(verbs.list_page(REVISIONS), json.loads)
    [found] = [
        each["metadata"]["name"]
        for each in listed["items"]
        if each["metadata"]["ownerReferences"][0]["name"] == name
    ]
    return str(found)


async def test_what_is_wrong_is_refused_with_help(rollouts: Up) -> None:
    async with viewing(rollouts, "default") as viewer:
        for path, headers, expected in (
            ("/api/sets", {"Host": "evil.example"}, 403),
            ("/api/sets", {"Origin": "http://evil.example"}, 403),
            ("/api/set/ads/default/none/stream", {}, 404),
            ("/api/set/ads/other/done/stream", {}, 403),
            ("/api/set/pods/default/done/nodes", {}, 400),
            ("/api/set/ads/default/..%2f..%2fsecrets/nodes", {}, 400),
            ("/api/set/ads/default/done/node/none", {}, 404),
            ("/api/set/ads/default/done/nodes?at=", {}, 400),
            ("/api/set/ads/default/done/nodes?at=0,-1", {}, 400),
            (f"/api/set/ads/default/done/nodes?at={'9' * 5000}", {}, 400),
            ("/api/set/ads/default/done/diff?from=1&to=99", {}, 404),
            ("/page/..%2fserver.py", {}, 404),
            ("/nothing", {}, 404),
        ):
            status, said = await viewer.get(path, **headers)
            assert status == expected, path
            assert said["error"], path
            assert said["help"], path


async def test_connections_are_bounded_and_those_that_are_there_go_on(rollouts: Up) -> None:
    """A controller shares its process with the page: its own connections must remain possible."""
    async with viewing(rollouts) as viewer:
        assert (await viewer.get("/api/sets"))[0] == 200
        port = int(viewer.address.rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS)]
        try:
            async with asyncio.timeout(60):
                assert await idle[-1][0].read() == b"", "one too many is closed"
            assert (await viewer.get("/api/sets"))[0] == 200  # by the connection from before
        finally:
            for _, writer in idle:
                writer.close()


async def test_viewers_are_bounded_and_those_that_are_there_go_on(rollouts: Up) -> None:
    path = "/api/set/ads/default/done/stream"
    async with viewing(rollouts) as viewer, contextlib.AsyncExitStack() as others:
        for _ in range(MAX_VIEWERS):
            events = await others.enter_async_context(viewer.stream(path))
            assert (await anext(events))["event"] == "snapshot"
        status, said = await viewer.get(path)
        assert (status, said["help"]) == (503, "close another page")
        assert (await viewer.get("/api/sets"))[0] == 200
        await others.aclose()
        async with viewer.stream(path) as events:
            assert (await anext(events))["event"] == "snapshot"


def test_it_listens_on_loopback_alone_and_opens_the_browser_unless_told_not_to(
    rollouts: Up, tmp_path: Path
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    for options in (["--no-browser"], []):
        assert not opened.exists()
        process = subprocess.Popen(
            [sys.executable, "-m", "everynode", "dashboard", *options],
            env={**os.environ, "KUBECONFIG": str(rollouts.kubeconfig), "BROWSER": f"{browser} %s"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            address = process.stdout.readline().removeprefix("dashboard at ").partition(";")[0]
            assert [f"http://{each.host}:{each.port}/" for each in listening(process.pid)] == [
                address
            ]
            if not options:
                while not opened.exists() or not opened.read_text():
                    assert process.poll() is None
                assert opened.read_text().strip() == address
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Up]:
    """A cluster without nodes, and a set of two revisions."""
    with started(tmp_path, "--nodes", "0") as up:
        made = daemonset("held", rolling={"partition": 3})
        for number, image in enumerate(("a:1", "a:2"), 1):
            made["spec"]["template"]["spec"]["containers"][0]["image"] = image
            body = {"spec": made["spec"]}
            ask(
                up,
                verbs.create(ADVANCED, made, namespace="default")
                if number == 1
                else verbs.patch(ADVANCED, "held", body, namespace="default"),
            )
            while len(ask(up, verbs.list_page(REVISIONS))[0]["items"]) < number:
                pass
        yield up


TOKEN = {"Authorization": "Bearer 0123"}
HELD = "/api/set/ads/default/held"


async def test_a_change_is_shown_and_then_written_as_it_was_shown(changing: Up) -> None:
    async with viewing(changing, token="0123") as viewer:

        async def act(step: str, **asked: str) -> tuple[int, Any]:
            return await viewer.post(f"{HELD}/{step}", asked, **TOKEN)

        assert (await viewer.get("/api/sets"))[1]["actions"]
        status, shown = await act("preview", action="pause")
        assert status == 200, shown
        assert "+      paused: true" in shown["diff"]
        assert (shown["done"], shown["command"]) == ("paused", "everynode pause ads/held")
        assert not await _paused(viewer)  # a dry run
        status, said = await act("apply", action="pause")
        assert (status, said["error"]) == (409, "this is not the change that was shown")
        assert not await _paused(viewer)
        status, said = await act("apply", action="pause", confirmed=shown["digest"])
        assert (status, said) == (200, {"done": "paused"})
        assert await _paused(viewer)
        _, again = await act("preview", action="pause")
        assert (again["changes"], again["done"]) == (False, "is paused already")
        _, shown = await act("preview", action="resume")
        await act("apply", action="resume", confirmed=shown["digest"])
        assert not await _paused(viewer)
        _, old = await act("preview", action="partition", argument="1")
        _, shown = await act("preview", action="partition", argument="2")
        await act("apply", action="partition", argument="2", confirmed=shown["digest"])
        # The same patch, of another value than was shown.
        status, said = await act("apply", action="partition", argument="1", confirmed=old["digest"])
        assert (status, said["error"]) == (409, "this is not the change that was shown")
        _, undone = await act("preview", action="undo", argument="1")
        assert "a:1" in undone["diff"]
        assert undone["command"] == "everynode undo ads/held --to-revision 1"
        for asked, expected in (
            ({"action": "partition", "argument": "101%"}, 409),
            ({"action": "undo", "argument": "99"}, 409),
            ({"action": "undo", "argument": "x"}, 409),
            ({"action": "delete"}, 400),
            ({"action": "pause", "more": "x"}, 400),
        ):
            status, said = await act("preview", **asked)
            assert status == expected, said
            assert said["error"], asked
            assert said["help"], asked


async def _paused(viewer: Viewer) -> bool:
    request = verbs.get(ADVANCED, "held", namespace="default")
    stored = await viewer.client.read(request, json.loads)
    return bool(stored["spec"]["updateStrategy"]["rollingUpdate"].get("paused"))


async def test_actions_need_the_token_and_the_page_s_own_origin(rollouts: Up) -> None:
    body = {"action": "pause"}
    async with viewing(rollouts, token="0123") as viewer:
        for headers, expected in (
            ({}, 401),
            ({"Authorization": "Bearer 0124"}, 401),
            ({"Authorization": "Bearer 012"}, 401),
            ({**TOKEN, "Origin": "http://evil.example"}, 403),
            ({**TOKEN, "Sec-Fetch-Site": "cross-site"}, 403),
            ({**TOKEN, "Host": "evil.example"}, 403),
            ({**TOKEN, "Content-Type": "text/plain"}, 415),
        ):
            for step in ("preview", "apply"):
                status, said = await viewer.post(f"{HELD}/{step}?token=0123", body, **headers)
                assert status == expected, headers
                assert said["help"], headers
        status, said = await viewer.post(f"{HELD}/preview", {"action": "x" * 100_000}, **TOKEN)
        assert (status, bool(said["help"])) == (413, True)
    async with viewing(rollouts) as viewer:
        status, said = await viewer.post(f"{HELD}/preview", body, **TOKEN)
        assert (status, said["error"]) == (405, "this dashboard only shows")


async def test_one_node_has_its_events_its_history_and_commands_that_help(rollouts: Up) -> None:
    async with viewing(rollouts) as viewer:
        _, told = await viewer.get("/api/set/ads/default/stuck/node/node-0006")
    texts = [each["text"] for each in told["story"]]
    assert any("created" in text for text in texts)
    assert [each["at"] for each in told["story"]] == sorted(each["at"] for each in told["story"])
    assert told["commands"][0].startswith("everynode ")
    assert any(command.startswith("kubectl describe ") for command in told["commands"])


def test_one_namespace_or_all_of_them() -> None:
    result = CliRunner().invoke(command, ["-A", "-n", "default"])
    assert result.exit_code == 2
    assert "not both" in result.output
