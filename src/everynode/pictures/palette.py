"""Palette: the colours of pictures in light and dark, the same as those of the dashboard's page.

Rules of a stylesheet instead of custom properties: programs that render SVG know the former.
"""

from __future__ import annotations

from typing import Final

# Class, colour in light, colour in dark. `state-` and the number of a cell, as in style.css.
COLOURS: Final = (
    ("ground", "#ffffff", "#14171d"),
    ("line", "#e2e5ea", "#272c36"),
    ("text", "#14171c", "#e9ecf1"),
    ("quiet", "#59606c", "#9aa3b2"),
    ("hover", "#eef1f5", "#1d222b"),
    ("good", "#0b7a5c", "#3ecf9f"),
    ("bad", "#b3400a", "#ff8f52"),
    ("state-0", "#a3abb8", "#4a5260"),
    ("state-1", "#8a94a6", "#6a7486"),
    ("state-2", "#7a6bb0", "#9d8fe0"),
    ("state-3", "#b07a00", "#e0a92b"),
    ("state-4", "#1f86c9", "#56b4e9"),
    ("state-5", "#0e8f6e", "#1fae86"),
    ("state-6", "#c94f08", "#f0702b"),
    ("state-7", "#b0437f", "#dd7fb4"),
    ("state-8", "#39404c", "#c6ccd8"),
)
_FONT: Final = 'system-ui,-apple-system,"Segoe UI",Roboto,Ubuntu,Cantarell,"DejaVu Sans",sans-serif'
_SHAPES: Final = (
    f"text{{font-family:{_FONT};font-size:14px;font-variant-numeric:tabular-nums}}"
    ".small{font-size:12.5px}.tiny{font-size:11.5px}.head{font-size:15px;font-weight:650}"
    ".heading{font-size:18px;font-weight:650;letter-spacing:-.01em}.bold{font-weight:650}"
    ".curve{fill:none;stroke-width:2.5;stroke-linejoin:round}.thin{stroke-width:1.5}"
    ".dashed{stroke-dasharray:7 4}.area{opacity:.13}.promise{stroke-dasharray:2 4;stroke-width:1.5}"
    ".ring,.box{fill:none;stroke-width:1.3}.gone{stroke-dasharray:5 4}"
    ".end{text-anchor:end}.middle{text-anchor:middle}"
)


def stylesheet(used: set[str]) -> str:
    """Return the rules of the classes that a picture uses; `x-line` is colour x for strokes."""
    light, dark = (_rules(used, column) for column in (1, 2))
    return f"{_SHAPES}{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _rules(used: set[str], column: int) -> str:
    rules = []
    for colour in COLOURS:
        name, value = colour[0], colour[column]
        if name in used:
            rules.append(f".{name}{{fill:{value}}}")
        if f"{name}-line" in used:
            rules.append(f".{name}-line{{stroke:{value}}}")
    return "".join(rules)
