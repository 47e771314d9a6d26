"""Chromium for tests, driven by its own protocol over a WebSocket.

aiohttp, which is here anyway, speaks it: no driver and no further package is needed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
HOW_TO_GET_IT = "needs Chromium: run hack/browser/install (Debian, Ubuntu)"
_PATIENCE = 60.0
_LOADS = 5
_NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
_LONGEST = 200.0  # seconds that a page may take for an answer, whatever is waited for


class Page:
    """One tab. Keeps the requests it made, and what it complained of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []  # of these requests
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._session = ""
        self._given_up = 0  # requests, for a change of the machine's network

    async def read(self) -> None:
        """Take in what the browser sends, until it is closed."""
        async for message in self._socket:
            told = json.loads(message.data)
            waiting = self._answers.pop(told.get("id", 0), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(told)
            elif told.get("method") == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])
                self.headers.append(told["params"]["request"]["headers"])
            elif told.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(str(told["params"]["exceptionDetails"]))
            elif told.get("method") == "Log.entryAdded":
                text = told["params"]["entry"]["text"]
                given_up = _NETWORK_CHANGED in text
                self._given_up += given_up
                if not given_up:
                    self.complaints.append(text)

    async def attach(self) -> None:
        """Open the tab."""
        target = await self.call("Target.createTarget", url="about:blank")
        made = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = made["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        body = {"id": number, "method": method, "params": params}
        await self._socket.send_json(body | ({"sessionId": self._session} if self._session else {}))
        told = await asyncio.wait_for(self._answers[number], _LONGEST)
        assert "error" not in told, told
        return told["result"]

    async def open(self, url: str) -> None:
        """Go to an address, as if the tab were new.

        Chromium gives up requests when an interface of the machine comes or goes, as those of
        containers do; a page whose files were given up is loaded again.
        """
        for _ in range(_LOADS):
            await self.call("Page.navigate", url="about:blank")
            self.requests.clear()
            self.headers.clear()
            self.complaints.clear()
            before = self._given_up
            await self.call("Page.navigate", url=url)
            await self.wait("document.readyState === 'complete'")
            if self._given_up == before:
                return

    async def run(self, script: str) -> Any:
        """Return the value of an expression; a promise is waited for."""
        told = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def wait(self, condition: str, seconds: float = _PATIENCE) -> Any:
        """Return the value of a condition as soon as it is true; the page looks at each frame."""
        script = (
            f"new Promise((done) => {{ const ends = performance.now() + {seconds * 1000};"
            "const look = () => { let found = null;"
            f"try {{ found = {condition}; }} catch (error) {{ found = null; }}"
            "if (found || performance.now() > ends)"
            "done(typeof found === 'object' ? found !== null : found);"
            "else setTimeout(look, 20); }; look(); })"
        )
        found = await self.run(script)
        text = "" if found else await self.run("document.body.innerText.slice(0, 900)")
        assert found, f"not true in time: {condition}\n{self.complaints}\n{text}"
        return found

    async def size(self, width: int, height: int = 1000) -> None:
        """Give the tab a size."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        feature = {"name": "prefers-color-scheme", "value": name}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key)

    async def picture(self) -> bytes:
        """Return what is seen, as PNG."""
        made = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(made["data"])


@contextlib.asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Page]:
    """Run Chromium with one tab; its files are in the folder."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
        *("--disable-background-networking", "--remote-debugging-port=0"),
        f"--user-data-dir={folder}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(_PATIENCE):
            line = b""
            while b"ws://" not in line:
                line = await process.stderr.readline()
                assert line, "Chromium ended"
        drain = asyncio.create_task(process.stderr.read())
        address = line.decode().split(" on ", 1)[1].strip()
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
        ):
            page = Page(socket)
            reading = asyncio.create_task(page.read())
            await page.attach()
            yield page
            await page.call("Page.close")
        await reading
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        await drain
