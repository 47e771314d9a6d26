"""The page in a real browser: a recording from disk, and a rollout of the embedded cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everynode.api.versions import decode_daemonset
from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.dashboard.bundle import bundle
from everynode.dashboard.export import export
from everynode.dashboard.server import Dashboard, serve
from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED
from tests.browser.chromium import HOW_TO_GET_IT, PROGRAM, Page, chromium
from tests.support.commands import started
from tests.support.stage import daemonset

pytestmark = pytest.mark.skipif(
    not PROGRAM and not os.environ.get("EVERYNODE_REQUIRE_BROWSER"), reason=HOW_TO_GET_IT
)
AXE = (Path(__file__).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
Change = Callable[[str, int], Awaitable[None]]
VIOLATIONS = (
    "axe.run().then((found) => found.violations.map((each) => "
    "each.id + ': ' + each.nodes.map((node) => node.html).join(' ')))"
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forecast of forty nodes, one of which has a hostile name."""
    manifest = daemonset("agent", rolling={"maxUnavailable": "10%"})
    old = with_previous_images(manifest)
    answer, recorded = record(ForecastRequest(old=old, new=manifest, nodes=40, failing=1))
    ds = decode_daemonset(manifest)
    document = export(answer, recorded, ds, facts=[], summary=f"Done {HOSTILE}")
    document["nodes"]["names"][0] = HOSTILE
    document["set"]["name"] = HOSTILE
    path = tmp_path_factory.mktemp("page") / "forecast.html"
    path.write_text(bundle(document), encoding="utf-8")
    return path


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    async with chromium(folder / "profile") as page:
        await page.size(1280)
        yield page


async def violations(page: Page) -> list[str]:
    # The policy of the page forbids scripts of others; the protocol of the browser is not bound.
    await page.run(AXE + "; 0")
    found: list[str] = await page.run(VIOLATIONS)
    return found


async def test_a_recording_plays_from_disk(recording: Path, tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        for scheme in ("light", "dark"):
            await page.scheme(scheme)
            await page.open(f"file://{recording}#/?node=node-0040&tab=table&t=0")
            await page.wait("document.querySelectorAll('tbody tr').length === 40")
            assert await violations(page) == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        # Hostile names are text.
        assert await page.run("document.querySelector('h1').textContent") == HOSTILE
        assert await page.run("document.querySelectorAll('main img, main script').length") == 0
        assert "taken'" in await page.run("document.title")
        # The slider leads to the end; the numbers are those of the forecast.
        slider = "document.querySelector('input[type=range]')"
        await page.run(f"{slider}.value = {slider}.max; {slider}.dispatchEvent(new Event('input'))")
        await page.wait("document.querySelector('.tile .note').textContent === '39 of 40 nodes'")
        # Every cell is reached by the keyboard, and Enter tells its story.
        await page.run("document.querySelector('.grid-list').focus()")
        await page.press("End")
        await page.press("ArrowLeft")
        await page.press("Enter")
        await page.wait("document.querySelector('.story h3').textContent === 'node-0039'")
        assert "node=node-0039" in await page.run("location.hash")
        assert page.complaints == []


async def test_a_live_rollout_is_seen_from_canary_to_undo(tmp_path: Path) -> None:
    async with live(tmp_path) as (page, change):
        await page.wait(text("complete"))
        assert await violations(page) == []
        await page.run("document.querySelector('.set-line').click()")
        await page.wait("document.querySelector('.tile .note').textContent === '6 of 6 nodes'")
        await change("a:2", 4)
        await page.wait("document.querySelector('.pill').dataset.state === 'held'")
        await page.wait(counted(5, 2))
        await page.wait(counted(2, 4))
        await change("a:never-ready", 0)
        await page.wait("document.querySelector('.pill').dataset.state === 'stalled'")
        await page.run("document.querySelector('.reason').click()")
        await page.wait("document.querySelector('.name-list .link')")
        await page.run("document.querySelector('.name-list .link').click()")
        await page.wait("document.querySelector('.story dl dt')")
        assert await violations(page) == []
        await change("a:2", 0)
        await page.wait("document.querySelector('.pill').dataset.state === 'complete'")
        await page.wait(counted(5, 6))
        assert page.complaints == []


def text(state: str) -> str:
    return f"document.querySelector('.set-line .pill').dataset.state === '{state}'"


def counted(state: int, nodes: int) -> str:
    button = f'.legend [data-state="{state}"] .count'
    return f"document.querySelector('{button}').textContent === '{nodes}'"


@asynccontextmanager
async def live(folder: Path) -> AsyncIterator[tuple[Page, Change]]:
    """A cluster of six nodes with one set, its dashboard in a browser, and how to change it."""
    with started(folder, "--nodes", "6", "--speed", "50") as up:
        async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:

            async def change(image: str, partition: int) -> None:
                made = daemonset("agent", rolling={"partition": partition})
                template = made["spec"]["template"]
                template["spec"]["containers"][0]["image"] = image
                body = {"spec": {k: made["spec"][k] for k in ("updateStrategy", "template")}}
                request = verbs.patch(ADVANCED, "agent", body, namespace="default")
                await cluster.client.write(request, bytes)

            created = verbs.create(ADVANCED, daemonset("agent"), namespace="default")
            await cluster.client.write(created, bytes)
            dashboard = Dashboard(cluster.client, cluster.clock, cluster="here", namespaces=())
            async with serve(dashboard, 0) as port, browser(folder) as page:
                await page.open(f"http://127.0.0.1:{port}/")
                yield page, change
