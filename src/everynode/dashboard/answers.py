"""Answers: JSON, files of the page, server-sent events, and errors with what to do."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from everynode.clock import Clock
from everynode.dashboard.access import Access, Viewer
from everynode.dashboard.feed import encode
from everynode.dashboard.guard import HEADERS, Guard, Refusal
from everynode.errors import one_line
from everynode.kube import errors
from everynode.kube.errors import KubeError
from everynode.log_text import describe

PAGE: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
VIEWER: Final = web.RequestKey("viewer", Viewer)
_KEEP_ALIVE: Final = 15.0
_SEND_TIMEOUT: Final = 20.0  # seconds that a viewer may take to read one message
_LOG: Final = logging.getLogger(__name__)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def json_answer(content: Any, status: int = 200) -> web.Response:
    """Return content as JSON."""
    body = msgspec.json.encode(content)
    return web.Response(status=status, body=body, content_type="application/json")


async def index(request: web.Request) -> web.StreamResponse:
    """Answer with the page."""
    return _file(request, "index.html")


async def static(request: web.Request) -> web.StreamResponse:
    """Answer with a file of the page."""
    return _file(request, request.match_info["name"])


def _file(request: web.Request, name: str) -> web.Response:
    """Return a file of the page; a name is looked up, never made part of a path."""
    path = {each.name: each for each in PAGE.iterdir()}.get(name) if PAGE.is_dir() else None
    if path is None or path.suffix not in _TYPES:
        raise Refusal(404, "there is no such file", "open the dashboard's first page")
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={**headers, "Content-Type": _TYPES[path.suffix]})


async def send(
    request: web.Request, events: AsyncIterator[bytes], clock: Clock, seconds: float | None
) -> web.StreamResponse:
    """Send events until the viewer leaves; one that does not read is cut off.

    After `seconds` the viewer has to reconnect, so that its rights are checked again.
    """
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    ends = None if seconds is None else clock.monotonic() + seconds
    pending: asyncio.Future[bytes] | None = None
    try:
        while ends is None or clock.monotonic() < ends:
            pending = pending or asyncio.ensure_future(anext(events))
            left = _KEEP_ALIVE if ends is None else ends - clock.monotonic()
            done, _ = await asyncio.wait([pending], timeout=min(_KEEP_ALIVE, max(0.0, left)))
            data = b": still here\n\n"
            if done:
                data, pending = pending.result(), None
            async with asyncio.timeout(_SEND_TIMEOUT):
                await response.write(data)
        await response.write(encode("renew", {}))
    except StopAsyncIteration:
        pending = None
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait([pending])
    return response


def _of_server(error: KubeError) -> Refusal:
    message = one_line(error.message)
    match error:
        case errors.Forbidden():
            return Refusal(403, message, "ask a cluster administrator for this right")
        case errors.NotFound():
            return Refusal(404, message, "go back to the list of sets")
        case errors.Invalid() | errors.Denied():
            return Refusal(422, message, "nothing was changed")
        case errors.UnknownOutcome():
            return Refusal(503, message, "look whether the change was made before you try again")
    return Refusal(503, message, "check that the API server runs and that you are logged in")


def checked(guard: Callable[[], Guard], access: Access) -> Any:
    """Return the middleware that every request passes: guard, viewer, and errors as JSON."""

    @web.middleware
    async def check(request: web.Request, handler: Answer) -> web.StreamResponse:
        try:
            guard().check(request.method, request.headers, request.path)
            if request.path.startswith("/api/"):
                request[VIEWER] = await access.viewer(request.headers)
            response = await handler(request)
        except Refusal as refusal:
            response = _refusal_response(refusal)
        except KubeError as error:
            response = _refusal_response(_of_server(error))
        except web.HTTPException as error:
            response = _refusal_response(
                Refusal(error.status, error.reason, "open the dashboard's first page")
            )
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            _LOG.error("request failed: %s", describe(error))
            response = _refusal_response(
                Refusal(500, "the dashboard failed", "look at what it printed")
            )
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    return check


def _refusal_response(refusal: Refusal) -> web.Response:
    response = json_answer({"error": refusal.error, "help": refusal.help}, refusal.status)
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
