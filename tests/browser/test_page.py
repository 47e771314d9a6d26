"""The page in a real browser: a recording from disk, and a rollout of the embedded cluster."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everynode.api.versions import decode_daemonset
from everynode.dashboard.bundle import bundle
from everynode.dashboard.export import export
from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images
from tests.browser.chromium import HOW_TO_GET_IT, PROGRAM, Page, chromium
from tests.browser.live_page import SET, TOKEN, live_page
from tests.support.stage import daemonset

pytestmark = pytest.mark.skipif(
    not PROGRAM and not os.environ.get("EVERYNODE_REQUIRE_BROWSER"), reason=HOW_TO_GET_IT
)
AXE = (Path(__file__).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
# What would turn the text around is shown as a box.
TURNED, SHOWN = f"{HOSTILE} \u202egpj.exe", f"{HOSTILE} \u25afgpj.exe"
VIOLATIONS = (
    "axe.run().then((found) => found.violations.map((each) => "
    "each.id + ': ' + each.nodes.map((node) => node.html).join(' ')))"
)


CONTROLS = """({
  group: document.querySelector('.card-extra select').value,
  states: [...document.querySelectorAll('.legend [aria-pressed=true]')]
    .map((each) => each.dataset.state),
  find: document.querySelector('input[type=search]').value,
  table: document.querySelector('details').open,
  time: Math.round(document.querySelector('input[type=range]').value),
})"""
# The names of the cells that a key leads to from the first or the last one; down, from each one.
WALK = """(() => {
  const list = document.querySelector('.grid-list');
  const press = (key) => list.dispatchEvent(new KeyboardEvent('keydown', { key }));
  const label = () => document.querySelector('.grid-cell').getAttribute('aria-label');
  const name = () => label().split(',')[0];
  const seen = new Set();
  const walk = (key) => {
    for (let before = ''; before !== name(); press(key)) {
      before = name();
      seen.add(before);
    }
  };
  list.focus();
  press('KEY' === 'ArrowLeft' ? 'End' : 'Home');
  if ('KEY' !== 'ArrowDown') walk('KEY');
  const starts = 'KEY' === 'ArrowDown' ? 40 : 0;
  for (let step = 0; step < starts; step += 1) {
    press('Home');
    for (let right = 0; right < step; right += 1) press('ArrowRight');
    walk('KEY');
  }
  return [...seen];
})()"""
SPOKEN = """new Promise((done) => {
  let told = 0;
  const regions = [...document.querySelectorAll('[aria-live], [role=status], [role=alert]')];
  const watch = new MutationObserver((changes) => { told += changes.length; });
  const all = { childList: true, characterData: true, subtree: true };
  for (const region of regions) watch.observe(region, all);
  const slider = document.querySelector('input[type=range]');
  let step = 0;
  const go = () => {
    step += 1;
    slider.value = (slider.max * step) / 40;
    slider.dispatchEvent(new Event('input'));
    if (step < 40) requestAnimationFrame(go);
    else setTimeout(() => done(told), 100);
  };
  go();
})"""
ALIKE = """import('/page/cells.js').then(({ drawCell }) => {
  const drawn = [...Array(9).keys()].map((state) => {
    const canvas = new OffscreenCanvas(6, 6);
    const context = canvas.getContext('2d');
    drawCell(context, state, 0, 0, 6, '#000');
    return [...context.getImageData(0, 0, 6, 6).data].filter((_, at) => at % 4 === 3);
  });
  const apart = (a, b) => a.reduce((sum, each, at) => sum + Math.abs(each - b[at]), 0) / 255;
  return drawn.flatMap((one, first) => drawn.map((two, second) => [first, second, apart(one, two)]))
    .filter(([first, second, distance]) => first < second && distance < 3);
})"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forecast of forty nodes, one of which has a hostile name."""
    manifest = daemonset("agent", rolling={"maxUnavailable": "10%"})
    old = with_previous_images(manifest)
    answer, recorded = record(ForecastRequest(old=old, new=manifest, nodes=40, failing=1))
    ds = decode_daemonset(manifest)
    document = export(answer, recorded, ds, facts=[], summary=f"Done {HOSTILE}")
    document["nodes"]["names"][0] = HOSTILE
    document["set"]["name"] = TURNED
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
        assert await page.run("document.querySelector('h1').textContent") == SHOWN
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


async def test_the_url_holds_the_whole_state_of_the_page(recording: Path, tmp_path: Path) -> None:
    query = (
        "group=topology.kubernetes.io%2Fzone&states=1%2C5&find=node-00&node=node-0040"
        "&tab=table&t=30.0"
    )
    async with browser(tmp_path) as page:
        await page.open(f"file://{recording}#/?{query}")
        await page.wait("document.querySelector('.story h3').textContent === 'node-0040'")
        assert await page.run(CONTROLS) == {
            "group": "topology.kubernetes.io/zone",
            "states": ["1", "5"],
            "find": "node-00",
            "table": True,
            "time": 30,
        }
        # What is chosen on the page gets into the URL, and what was in it stays.
        await page.run("document.querySelector('.legend [data-state=\"5\"]').click()")
        assert await page.run("location.hash") == "#/?" + query.replace("1%2C5", "1")


async def test_arrow_keys_reach_every_cell_and_live_regions_are_quiet(
    recording: Path, tmp_path: Path
) -> None:
    async with browser(tmp_path) as page:
        for group in ("", "group=topology.kubernetes.io%2Fzone"):
            await page.open(f"file://{recording}#/?{group}")
            await page.wait("document.querySelector('.grid canvas').height > 0")
            for key in ("ArrowRight", "ArrowLeft", "ArrowDown"):
                reached = await page.run(WALK.replace("KEY", key))
                assert len(reached) == 40, (group, key)
            assert await page.run("getComputedStyle(document.querySelector('.grid-cell')).display")
        # Forty steps of a rollout are one sentence for those who listen.
        assert await page.run(SPOKEN) <= 1
        assert page.complaints == []


async def test_a_rollout_is_seen_from_canary_to_undo(tmp_path: Path) -> None:
    async with live_page(tmp_path) as live:
        page = live.page
        await page.wait("document.body.innerText.includes('No DaemonSet that you may see exists')")
        await live.create()
        await page.wait("document.querySelector('.set-line .pill').dataset.state === 'complete'")
        assert await violations(page) == []
        await page.run("document.querySelector('.set-line').click()")
        await live.until("complete")
        # A canary on two of six nodes.
        await live.change("a:2", 4)
        await live.until("held")
        await page.wait(counted(5, 2))
        await page.wait(counted(2, 4))
        # A version that never becomes ready: the page names the reason and the nodes.
        await live.change("a:never-ready", 0)
        await live.until("waiting")
        await page.run("document.querySelector('.by-reason').click()")
        await page.wait("document.querySelector('.name-list .link')")
        assert "reason=" in await page.run("location.hash")
        await page.run("document.querySelector('.name-list .link').click()")
        await page.wait("document.querySelector('.story .events li')")
        assert await violations(page) == []
        # Paused and taken back on the page itself.
        assert "+      paused: true" in await live.act("Pause")
        assert (await live.stored())["spec"]["updateStrategy"]["rollingUpdate"]["paused"]
        await page.wait("document.querySelector('.action').textContent === 'Resume'")
        assert "a:2" in await live.act("Undo …", "2")
        assert "-      paused: true" in await live.act("Resume")
        await live.until("complete")
        await page.wait("!document.querySelector('.name-list')")  # none waits any more
        assert "partition: 3" in await live.act("Partition …", "3")
        assert (await live.stored())["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 3
        await page.wait(counted(5, 6))
        assert [url for url in page.requests if TOKEN in url] == []
        assert [url for url in page.requests if not url.startswith(live.address)] == []
        # What others wrote into the cluster is text.
        await live.annotate(TURNED)
        await page.wait(f"document.querySelector('.cause').textContent === {json.dumps(SHOWN)}")
        assert await page.run("document.querySelectorAll('main img, main script').length") == 0
        assert await page.run("document.title") != "taken"
        # No state is told by its colour alone: drawn in one colour, all shapes differ.
        assert await page.run(ALIKE) == []
        assert page.complaints == []


async def test_a_cut_stream_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    async with live_page(tmp_path) as live:
        await live.create()
        await live.page.run(f"location.hash = '{SET}'")
        await live.until("complete")
        live.cable.cut()
        await live.page.wait("document.body.innerText.includes('The connection is cut')")
        await live.change("a:2", 4)  # what it misses
        live.cable.mend()
        await live.until("held")
        await live.page.wait(counted(5, 2))
        await live.page.wait("!document.body.innerText.includes('The connection is cut')")
        asked = zip(live.page.requests, live.page.headers, strict=True)
        resumed = [sent.get("Last-Event-ID") for url, sent in asked if url.endswith("agent/stream")]
        assert resumed[0] is None
        assert resumed[-1], "it asked for everything anew"


async def test_a_page_that_is_left_gives_its_connection_back(tmp_path: Path) -> None:
    """A browser keeps pages for the way back, and has six connections to a server."""
    async with live_page(tmp_path) as live:
        await live.create()
        await live.page.run(f"location.hash = '{SET}'")
        await live.until("complete")
        for _ in range(8):
            await live.page.open(f"{live.address}{SET}?node=node-0006&tab=table")
            await live.page.wait("document.querySelector('.story dl dt')")
            # Nothing moves any more, and the table is filled all the same.
            await live.page.wait("document.querySelector('tbody td:last-child').textContent")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_view_is_accessible_and_fits_at_three_widths(
    scheme: str, tmp_path: Path
) -> None:
    async with live_page(tmp_path) as live:
        page = live.page
        await page.scheme(scheme)
        await live.create()
        await page.wait("document.querySelector('.set-line .pill').dataset.state === 'complete'")
        await live.change("a:never-ready", 3)
        group = "group=topology.kubernetes.io/zone"
        views = ("#/", f"{SET}?{group}&node=node-0006&tab=table&diff=1-2")
        for view in views:
            await page.run(f"location.hash = '{view}'")
            shown = ".story dl dt" if view.startswith(SET) else ".set-line"
            await page.wait(f"document.querySelector('{shown}')")
            for width in (390, 1280, 2560):
                await page.size(width)
                assert await violations(page) == [], (view, width)
                wide = await page.run("document.documentElement.scrollWidth")
                assert wide <= width, (view, width)


def counted(state: int, nodes: int) -> str:
    button = f'.legend [data-state="{state}"] .count'
    return f"document.querySelector('{button}').textContent === '{nodes}'"
