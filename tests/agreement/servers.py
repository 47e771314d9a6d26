"""The two servers that get the same requests: each by HTTPS with its token."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec
from yarl import URL

from tests.agreement.question import Question

_PATIENCE: Final = aiohttp.ClientTimeout(total=120.0)
_HEADERS: Final = ("Content-Type", "Warning", "Retry-After")
END: Final = "end"  # the annotation by which the last event of a watch is known


@dataclass(frozen=True)
class Answer:
    """The response of a server."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The object, the events of a watch that has ended, or plain text."""
        try:
            return json.loads(self.raw)
        except ValueError:
            pass
        try:
            return [json.loads(line) for line in self.raw.splitlines()]
        except ValueError:
            return self.raw.decode(errors="replace")


class Server:
    """An API server at an address."""

    def __init__(self, url: str, token: str, context: ssl.SSLContext) -> None:
        self._url = url
        self._token = token
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=_PATIENCE,
            read_bufsize=1 << 20,
            headers={"User-Agent": "agreement/1"},
        )

    async def close(self) -> None:
        await self._session.close()

    def _headers(self, question: Question) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": question.content_type,
            "Accept": question.accept,
        }

    async def ask(self, question: Question) -> Answer:
        async with self._session.request(
            question.method,
            URL(f"{self._url}{question.path}", encoded=question.verbatim),
            data=_encoded(question.body),
            headers=self._headers(question),
        ) as response:
            shown = {
                name: ", ".join(response.headers.getall(name))
                for name in _HEADERS
                if name in response.headers
            }
            return Answer(response.status, shown, await response.read())

    async def watch(self, question: Question) -> Watching:
        """Begin a watch; it is established when this returns."""
        response = await self._session.get(
            f"{self._url}{question.path}", headers=self._headers(question)
        )
        assert response.status == 200, await response.text()
        return Watching(response)


class Watching:
    """A watch that is under way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def events(self) -> list[Any]:
        """Every event until the one of an object that carries the annotation of the end."""
        found = []
        async with self._response, asyncio.timeout(120):
            while line := await self._response.content.readline():
                event = json.loads(line)
                found.append(event)
                if _is_end(event["object"]):
                    break
        return found


def _is_end(obj: Any) -> bool:
    """Whether this is the last object, be it whole or the row of a table."""
    rows = obj.get("rows") or []
    for each in (obj, *(row.get("object") or {} for row in rows)):
        if END in ((each.get("metadata") or {}).get("annotations") or {}):
            return True
    return False


def _encoded(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
