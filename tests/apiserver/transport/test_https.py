from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from everynode.apiserver.server import Server
from everynode.apiserver.transport.https import MAX_BODY_BYTES, PortError
from everynode.clock import SystemClock
from tests.support.api_client import CORE, MAPS, config_map


class Client:
    """A client with the token, over a real socket."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.headers = {"Authorization": f"Bearer {server.identity.token}", "User-Agent": "test/1"}

    async def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Any]:
        data = io.BytesIO(json.dumps(body).encode()) if body is not None else None
        sent = {**self.headers, "Content-Type": "application/json", **headers}
        url = f"{self.server.url}{path}"
        async with self.session.request(method, url, data=data, headers=sent) as response:
            text = await response.text()
            kind = response.headers["Content-Type"]
            return response.status, json.loads(text) if "json" in kind else text


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Client]:
    await server.start()
    trust = ssl.create_default_context(cadata=server.identity.authority)
    connector = aiohttp.TCPConnector(ssl=trust)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(server, session)
    finally:
        await server.stop()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving(Server(clock=SystemClock())) as made:
        yield made


async def test_objects_are_written_and_read_over_the_wire(client: Client) -> None:
    status, made = await client.ask("POST", MAPS, config_map("a", x="1"))
    assert status == 201
    # The field manager is taken from the User-Agent.
    assert made["metadata"]["managedFields"][0]["manager"] == "test"
    assert await client.ask("GET", f"{MAPS}/a") == (200, made)


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic eDp5"])
async def test_nothing_is_served_without_the_token(client: Client, header: str) -> None:
    for path in (MAPS, "/version", "/apis", "/openapi/v3", "/nope"):
        status, body = await client.ask("GET", path, Authorization=header)
        assert (status, body["reason"], body["code"]) == (401, "Unauthorized", 401)


async def test_health_is_served_without_a_token(client: Client) -> None:
    assert await client.ask("GET", "/readyz", Authorization="") == (200, "ok")


async def test_pages_of_other_sites_cannot_reach_the_server(client: Client) -> None:
    status, _ = await client.ask("GET", MAPS, Host="evil.example")
    assert status == 403
    port = client.server.url.rpartition(":")[2]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}"):
        assert (await client.ask("GET", MAPS, Host=host))[0] == 200


async def test_watch_streams_events_as_they_happen(client: Client) -> None:
    url = f"{client.server.url}{MAPS}?watch=true&fieldSelector=metadata.name%3Da"
    async with client.session.get(url, headers=client.headers) as stream:
        assert stream.headers["Content-Type"].startswith("application/json")
        await client.ask("POST", MAPS, config_map("a"))
        line = await asyncio.wait_for(stream.content.readline(), 60)
        assert json.loads(line)["type"] == "ADDED"
        await client.ask("DELETE", f"{MAPS}/a")
        line = await asyncio.wait_for(stream.content.readline(), 60)
        assert json.loads(line)["type"] == "DELETED"


async def test_watch_headers_come_before_the_first_event(client: Client) -> None:
    url = f"{client.server.url}{MAPS}?watch=true"
    async with asyncio.timeout(60), client.session.get(url, headers=client.headers) as stream:
        assert stream.status == 200


async def test_refused_watch_is_a_whole_answer(client: Client) -> None:
    status, body = await client.ask("GET", f"{MAPS}?watch=true&sendInitialEvents=true")
    assert (status, body["reason"]) == (422, "Invalid")


async def test_stopping_ends_watches(client: Client) -> None:
    url = f"{client.server.url}{CORE}/pods?watch=true"
    async with client.session.get(url, headers=client.headers) as stream:
        client.server.api.stop()
        assert await asyncio.wait_for(stream.content.read(), 60) == b""


async def test_body_that_is_too_large_is_refused(client: Client) -> None:
    status, body = await client.ask("POST", MAPS, config_map("a", x="y" * MAX_BODY_BYTES))
    assert (status, body["reason"]) == (413, "RequestEntityTooLarge")


async def test_warnings_reach_the_client(client: Client) -> None:
    url = f"{client.server.url}{MAPS}"
    body = {**config_map("a"), "odd": 1}
    async with client.session.post(url, json=body, headers=client.headers) as response:
        assert response.headers["Warning"] == '299 - "unknown field \\"odd\\""'


async def test_busy_port_gives_one_clear_error(client: Client) -> None:
    other = Server(clock=SystemClock())
    port = int(client.server.url.rpartition(":")[2])
    with pytest.raises(PortError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*in use"):
        await other.start(port=port)
    await other.stop()


async def test_certificate_of_another_server_is_not_trusted(client: Client) -> None:
    other = Server(clock=SystemClock())
    trust = ssl.create_default_context(cadata=other.identity.authority)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{client.server.url}/readyz", ssl=trust)
