"""The pictures of the documentation are what the program draws today."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from hack.pictures.benchmark import newest
from hack.pictures.catalogue import FOLDER, PICTURES
from tests.support.paths import ROOT

LARGEST = 60_000  # bytes
SVG = "{http://www.w3.org/2000/svg}"
IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+\.svg)\)")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_current(name: str) -> None:
    drawn = PICTURES[name]()
    assert drawn == (FOLDER / name).read_text(encoding="utf-8"), "run `make pictures`"
    assert len(drawn.encode()) < LARGEST


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_in_words_what_it_shows(name: str) -> None:
    root = ElementTree.parse(FOLDER / name).getroot()
    title, described = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    assert title
    assert described
    assert len(described) > len(title)
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


def test_every_picture_is_shown_by_a_page_with_words_in_its_place() -> None:
    shown = {}
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")):
        for words, target in IMAGE.findall(page.read_text(encoding="utf-8")):
            shown[(page.parent / target).resolve()] = words
    assert {path.name for path in shown} == {*PICTURES}
    assert {path.name for path in FOLDER.iterdir()} == {*PICTURES}
    assert [path.name for path in shown if not path.exists()] == []


def test_the_newest_figures_of_both_on_the_largest_fleet_are_drawn() -> None:
    text = (ROOT / "bench" / "results" / "rollout.jsonl").read_text(encoding="utf-8")
    found = newest(text)
    assert found.nodes == 5000
    # A later run of one of them alone, or on a smaller fleet, changes nothing.
    alone = re.sub(r"kube-controller-manager", "another", text.splitlines()[-1])
    assert newest(f"{text}{alone}\n") == found
