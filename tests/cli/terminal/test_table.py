from __future__ import annotations

import io

import pytest

from everynode.cli.terminal.style import Style, cut_line
from everynode.cli.terminal.table import Cell, format_table, shorten


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


ROWS: list[list[str | Cell]] = [
    ["a", Cell("fine", "green"), "x" * 60],
    ["long-name", "b", "two words"],
]


def test_columns_line_up_and_nothing_is_cut_in_a_pipe() -> None:
    lines = format_table(["NAME", "STATE", "TEXT"], ROWS, Style(io.StringIO()))
    assert lines == [
        "NAME        STATE   TEXT",
        "a           fine    " + "x" * 60,
        "long-name   b       two words",
    ]


def test_a_terminal_gets_colours_and_lines_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, first, _ = format_table(["NAME", "STATE", "TEXT"], ROWS, Style(Terminal()))
    assert first == "a           \x1b[32mfine\x1b[0m    " + "x" * 19 + "…"


def test_a_narrow_terminal_gets_smaller_gaps_and_no_useless_stump(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    head, rows = ["NAME", "STATE", "AGE"], [["a-long-name", "complete", "15m"]]
    for width, line in (
        (28, "a-long-name   complete   15m"),
        (27, "a-long-name  complete  15m"),
        (25, "a-long-name complete 15m"),
        (23, "a-long-name   complete   15m"),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        assert format_table(head, rows, Style(Terminal()))[1] == line
    monkeypatch.setenv("COLUMNS", "30")
    rows = [["a-long-name", "complete", "nothing moves"]]
    assert format_table(head, rows, Style(Terminal()))[1] == "a-long-name complete nothing …"
    monkeypatch.setenv("COLUMNS", "27")
    assert format_table(head, rows, Style(Terminal()))[1].endswith("   nothing moves")


def test_control_characters_of_others_reach_no_terminal() -> None:
    assert Style(io.StringIO()).paint("a\x1b]0;title\x07b") == "a?]0;title?b"


def test_long_lines_are_broken_between_words_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "24")
    line = "warning: nothing is known of it"
    assert Style(io.StringIO()).wrap(line) == line
    assert Style(Terminal()).wrap(line) == "warning: nothing is\n         known of it"
    assert Style(Terminal()).wrap("  order   a, b, c, d, e, f, g") == (
        "  order   a, b, c, d, e,\n          f, g"
    )
    assert Style(Terminal()).wrap("Complete after a minute or two") == (
        "Complete after a minute\nor two"
    )


def test_painted_lines_are_cut_by_what_is_seen() -> None:
    assert cut_line("\x1b[32mgreen\x1b[0m and more", 7) == "\x1b[32mgreen\x1b[0m …"
    assert cut_line("\x1b[32mgreen\x1b[0m", 5) == "\x1b[32mgreen\x1b[0m"
    assert shorten("abcdef", 4) == "abc…"
