"""Svg: one picture as text. All texts are escaped, and it refers to nothing outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from everynode.pictures.palette import stylesheet

WIDTH: Final = 520  # units of every picture: 14 units of text are readable on a phone, too
MARGIN: Final = 24
_PIXELS_PER_UNIT: Final = 1.3  # pixels for a unit where there is room
# What XML cannot hold, not even escaped.
_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# How wide a letter is on the average, as a share of its size: in the widest of the usual fonts.
_WIDE: Final = 0.57
_WIDE_BOLD: Final = 0.66
_SVG: Final = "http://www.w3.org/2000/svg"


class Svg:
    """A picture that grows downwards: a card of its own colour, with a name for screen readers."""

    def __init__(self, title: str, description: str) -> None:
        self._root = ElementTree.Element("svg", {"xmlns": _SVG, "role": "img"})
        self._root.set("aria-labelledby", "title desc")
        self._append("title", {"id": "title"}, title)
        self._append("desc", {"id": "desc"}, description)
        self._style = self._append("style", {})
        self._used: set[str] = set()
        self._defined: set[str] = set()
        card = {"x": "0.5", "y": "0.5", "width": str(WIDTH - 1), "rx": "12"}
        self._card = self._element("rect", "ground line-line", card)

    def text(self, x: float, y: float, words: str, classes: str = "text") -> None:
        """Write one line; `y` is where its letters stand."""
        self._element("text", classes, {"x": _number(x), "y": _number(y)}, words)

    def line(self, x1: float, y1: float, x2: float, y2: float, classes: str) -> None:
        """Draw a straight line."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        self._element("line", classes, {key: _number(value) for key, value in ends.items()})

    def rect(
        self, x: float, y: float, width: float, height: float, classes: str, *, round: float = 0.0
    ) -> None:
        """Draw a rectangle."""
        sides = {"x": x, "y": y, "width": width, "height": height}
        attributes = {key: _number(value) for key, value in sides.items()}
        self._element("rect", classes, attributes | ({"rx": _number(round)} if round else {}))

    def path(self, data: str, classes: str) -> None:
        """Draw a path."""
        self._element("path", classes, {"d": data})

    def stamp(self, name: str, data: str, classes: str, x: float, y: float) -> None:
        """Draw a shape that occurs often and is written once; an outline in another is a hole."""
        if name not in self._defined:
            self._defined.add(name)
            self._used.update(classes.split())
            kept = ElementTree.SubElement(self._root, "defs")
            shape = {"id": name, "class": classes, "d": data, "fill-rule": "evenodd"}
            ElementTree.SubElement(kept, "path", shape)
        self._append("use", {"href": f"#{name}", "x": _number(x), "y": _number(y)})

    def render(self, height: float) -> str:
        """Return the picture with this height in units."""
        self._style.text = stylesheet(self._used)
        self._card.set("height", _number(height - 1))
        self._root.set("viewBox", f"0 0 {WIDTH} {_number(height)}")
        self._root.set("width", _number(WIDTH * _PIXELS_PER_UNIT))
        self._root.set("height", _number(height * _PIXELS_PER_UNIT))
        ElementTree.indent(self._root, space="")
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"

    def _element(
        self, name: str, classes: str, attributes: dict[str, str], words: str = ""
    ) -> ElementTree.Element:
        self._used.update(classes.split())
        return self._append(name, {"class": classes} | attributes, words)

    def _append(
        self, name: str, attributes: dict[str, str], words: str = ""
    ) -> ElementTree.Element:
        element = ElementTree.SubElement(self._root, name, attributes)
        if words:
            element.text = _ILLEGAL.sub("\ufffd", words)
        return element


def wrapped(words: str, room: float, *, size: float = 14.0, bold: bool = False) -> Iterator[str]:
    """Yield the words in lines that fit into `room` units; a word that does not is cut."""
    most = max(1, int(room / (size * (_WIDE_BOLD if bold else _WIDE))))
    line = ""
    for word in words.split():
        shown = word if len(word) <= most else f"{word[: most - 1]}…"
        if line and len(line) + 1 + len(shown) > most:
            yield line
            line = shown
        else:
            line = f"{line} {shown}".strip()
    if line:
        yield line


def timecode(seconds: float) -> str:
    """`0:05`, `12:40`, `3:05:00`: as a player shows a time."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
