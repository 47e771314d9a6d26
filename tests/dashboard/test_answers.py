from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest
from aiohttp import web

from everynode.clock import SystemClock
from everynode.dashboard import answers


async def test_a_viewer_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_SEND_TIMEOUT", 0.1)
    ended = asyncio.Event()

    async def events() -> AsyncGenerator[bytes]:
        while True:
            yield b"x" * 65536

    async def stream(request: web.Request) -> web.StreamResponse:
        async with contextlib.aclosing(events()) as endless:
            try:
                return await answers.send(request, endless, SystemClock(), None)
            finally:
                ended.set()

    app = web.Application()
    app.add_routes([web.get("/", stream)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    [address] = runner.addresses
    _, writer = await asyncio.open_connection(*address[:2])
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        async with asyncio.timeout(60):
            await ended.wait()
    finally:
        writer.transport.abort()
        await runner.cleanup()
