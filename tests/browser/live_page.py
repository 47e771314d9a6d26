"""A rollout of the embedded cluster in a browser, and a way to cut the connection between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.dashboard.server import Dashboard, serve
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, REVISIONS
from tests.browser.chromium import Page, chromium
from tests.support.commands import started
from tests.support.stage import daemonset

TOKEN = "0b9c6a52"
SET = "#/set/ads/default/agent"


class Cable:
    """What lies between a browser and the server; it can be cut, and mended."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: set[asyncio.StreamWriter] = set()
        self._whole = True

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        if not self._whole:
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends |= {writer, back}
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer))

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        self._whole = False
        for end in self._ends:
            end.close()
        self._ends.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self._whole = True


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


class LivePage:
    """The page of one set, the cluster behind it, and the cable between them."""

    def __init__(self, page: Page, client: Client, cable: Cable, address: str) -> None:
        self.page = page
        self.address = address
        self.cable = cable
        self._client = client

    async def create(self) -> None:
        """Create the set."""
        request = verbs.create(ADVANCED, daemonset("agent"), namespace="default")
        await self._client.write(request, bytes)

    async def change(self, image: str, partition: int) -> None:
        """Give the set another image and another partition."""
        made = daemonset("agent", rolling={"partition": partition})
        made["spec"]["template"]["spec"]["containers"][0]["image"] = image
        body = {"spec": {key: made["spec"][key] for key in ("updateStrategy", "template")}}
        await self._client.write(verbs.patch(ADVANCED, "agent", body, namespace="default"), bytes)

    async def annotate(self, cause: str) -> None:
        """Write a change cause to the newest revision."""
        listed = await self._client.read(verbs.list_page(REVISIONS), json.loads)
        newest = max(listed["items"], key=lambda each: each["revision"])["metadata"]["name"]
        body = {"metadata": {"annotations": {"kubernetes.io/change-cause": cause}}}
        await self._client.write(verbs.patch(REVISIONS, newest, body, namespace="default"), bytes)

    async def stored(self) -> Any:
        """Return the set as `kubectl get -o json` prints it."""
        request = verbs.get(ADVANCED, "agent", namespace="default")
        return await self._client.read(request, json.loads)

    async def until(self, state: str) -> None:
        """Wait until the page shows a state, and the numbers of the condition Complete."""
        await self.page.wait(f"document.querySelector('h1 + .pill').dataset.state === '{state}'")
        told, shown = "", "nothing"
        async with asyncio.timeout(60):
            while not told.startswith(f"{shown} are updated and available"):
                told = _message((await self.stored())["status"], "Complete")
                shown = await self.page.run("document.querySelector('.tile .note').textContent")

    async def act(self, word: str, argument: str = "") -> str:
        """Press a button of an action, confirm the change, and return what was shown of it."""
        page = self.page
        button = (
            f"[...document.querySelectorAll('.action')].find((e) => e.textContent === '{word}')"
        )
        await page.wait(button)
        await page.run(f"{button}.click()")
        if argument:
            field = "document.querySelector('dialog [name=argument]')"
            await page.wait(field)
            await page.run(f"{field}.value = '{argument}'; {field}.form.requestSubmit()")
        await page.wait("document.querySelector('dialog :is(.confirm, .token)')")
        if await page.run("!!document.querySelector('dialog .token')"):
            field = "document.querySelector('dialog input')"
            await page.run(f"{field}.value = '{TOKEN}'; {field}.form.requestSubmit()")
            await page.wait("document.querySelector('dialog .confirm')")
        shown = str(await page.run("document.querySelector('dialog .diff').textContent"))
        await page.run("document.querySelector('dialog .confirm').click()")
        await page.wait("document.querySelector('dialog .done')")
        await page.run("document.querySelector('dialog').close()")
        return shown


@asynccontextmanager
async def live_page(folder: Path) -> AsyncIterator[LivePage]:
    """A cluster of six nodes, its dashboard with actions, and a browser."""
    with started(folder, "--nodes", "6", "--speed", "50", "--no-dashboard") as up:
        async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:
            dashboard = Dashboard(cluster.client, cluster.clock, cluster="here", token=TOKEN)
            # The cable has a port of its own, as a port-forward has.
            async with serve(dashboard, 0, forwarded=True) as port:
                cable = Cable(port)
                server = await asyncio.start_server(cable.carry, "127.0.0.1", 0)
                address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
                async with server, chromium(folder / "profile") as page:
                    await page.size(1280)
                    await page.open(address)
                    yield LivePage(page, cluster.client, cable, address)
                    cable.cut()


def _message(status: dict[str, Any], kind: str) -> str:
    """Return the message of a condition; empty while there is none."""
    said: list[str] = [each["message"] for each in status["conditions"] if each["type"] == kind]
    return said[0] if said else ""
