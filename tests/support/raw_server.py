"""Raw server: an HTTP server or proxy that sends exactly the bytes that a test gives it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def raw_server(answer: bytes, *, then: bytes = b"") -> AsyncIterator[tuple[str, list[int]]]:
    """Answer every request with these bytes; yield the URL and each request's connection."""
    connections = itertools.count()
    asked: list[int] = []
    writers: list[asyncio.StreamWriter] = []
    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(connections)
        writers.append(writer)
        serving.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                asked.append(number)
                writer.write(answer)
                while then:
                    writer.write(then)
                    await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}", asked
    finally:
        for writer in writers:
            writer.transport.abort()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*(task for task in serving if task), return_exceptions=True)
        await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)
