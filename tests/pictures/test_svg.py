from __future__ import annotations

from xml.etree import ElementTree

import pytest

from everynode.pictures.svg import Svg, timecode, wrapped

HOSTILE = "</text><script>alert(1)</script>&amp;\"'\x00\x1b\ud800"
SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_a_title_and_a_description_that_name_it() -> None:
    root = ElementTree.fromstring(Svg("the title", "all of it in words").render(100))
    named = [root.find(f"{SVG}{name}") for name in ("title", "desc")]
    assert [each.text for each in named if each is not None] == ["the title", "all of it in words"]
    assert root.get("role") == "img"
    labels = [each.get("id") for each in named if each is not None]
    assert root.get("aria-labelledby", "").split() == labels
    assert root.get("viewBox") == "0 0 520 100"


def test_names_of_others_are_text_and_nothing_else() -> None:
    svg = Svg(HOSTILE, HOSTILE)
    svg.text(0, 0, HOSTILE)
    root = ElementTree.fromstring(svg.render(100))
    assert {each.tag.removeprefix(SVG) for each in root} == {
        *("title", "desc", "style", "rect", "text")
    }
    shown = root.find(f"{SVG}text")
    assert shown is not None
    assert shown.text is not None
    assert shown.text.startswith("</text><script>alert(1)</script>&amp;")
    assert "\x00" not in shown.text


def test_a_shape_that_occurs_often_is_written_once() -> None:
    svg = Svg("a", "b")
    for x in range(50):
        svg.stamp("square", "M0 0h9v9h-9Z", "state-5", x, 0)
    text = svg.render(100)
    assert text.count("M0 0h9v9h-9Z") == 1
    assert text.count('href="#square"') == 50
    assert ".state-5{" in text


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("", []),
        ("one two", ["one two"]),
        ("eleven twelve", ["eleven", "twelve"]),
        ("a-word-that-is-far-too-long", ["a-word-tha…"]),
    ],
)
def test_words_are_wrapped(words: str, lines: list[str]) -> None:
    assert list(wrapped(words, 11 * 14 * 0.58)) == lines


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "0:05"), (760, "12:40"), (11100, "3:05:00"), (59.6, "1:00")]
)
def test_times_are_shown_as_by_a_player(seconds: float, shown: str) -> None:
    assert timecode(seconds) == shown
