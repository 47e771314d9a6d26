"""The pictures of the documentation in a real browser: legible, in light and in dark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.pictures.forecast_chart import Drawn, draw_forecasts
from everynode.pictures.svg import WIDTH
from hack.pictures.catalogue import FOLDER, PICTURES
from tests.browser.chromium import HOW_TO_GET_IT, PROGRAM, Page, chromium
from tests.support.stage import daemonset

pytestmark = pytest.mark.skipif(
    not PROGRAM and not os.environ.get("EVERYNODE_REQUIRE_BROWSER"), reason=HOW_TO_GET_IT
)
EDGE = 8  # units that stay free
TEXTS = """[...document.querySelectorAll('text')].map((each) => {
  const box = each.getBBox();
  return { words: each.textContent, left: box.x, right: box.x + box.width,
           top: box.y + box.height * 0.2, bottom: box.y + box.height * 0.8 };
})"""
COLOURS = "['rect', 'text'].map((name) => getComputedStyle(document.querySelector(name)).fill)"


async def faults(page: Page) -> list[str]:
    """What is wrong with the texts of a picture: they leave it, or cover one another."""
    texts: list[dict[str, Any]] = await page.run(TEXTS)
    found = [
        f"leaves the card: {each['words']}"
        for each in texts
        if each["left"] < EDGE or each["right"] > WIDTH - EDGE
    ]
    for number, one in enumerate(texts):
        for other in texts[number + 1 :]:
            apart = one["right"] <= other["left"] or other["right"] <= one["left"]
            if not apart and one["top"] < other["bottom"] and other["top"] < one["bottom"]:
                found.append(f"covers another: {one['words']} / {other['words']}")
    return found


@pytest.fixture
def long_words(tmp_path: Path) -> Path:
    """A chart of two forecasts with names that do not fit."""
    made = daemonset("agent", rolling={"maxUnavailable": "10%"})
    question = ForecastRequest(old=with_previous_images(made), new=made, nodes=10)
    answer, _ = record(question)
    words = "a-name-without-an-end-" * 12 + " and words that take more than one line of it" * 2
    path = tmp_path / "long.svg"
    path.write_text(draw_forecasts(words, [Drawn(answer, words, words)] * 2), encoding="utf-8")
    return path


async def test_the_pictures_are_legible_in_light_and_dark(tmp_path: Path, long_words: Path) -> None:
    wrong = {}
    async with chromium(tmp_path / "profile") as page:
        for path in (*(FOLDER / name for name in PICTURES), long_words):
            seen = {}
            for scheme in ("light", "dark"):
                await page.scheme(scheme)
                await page.open(path.as_uri())
                await page.wait("document.querySelector('text')")
                seen[scheme] = await page.run(COLOURS)
                if found := await faults(page):
                    wrong[path.name] = found
            assert [a != b for a, b in zip(seen["light"], seen["dark"], strict=True)] == [True] * 2
            assert page.complaints == []
            assert page.requests == [path.as_uri()]
    assert wrong == {}
