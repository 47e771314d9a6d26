from __future__ import annotations

import io

import pytest

from everynode.cli.terminal.node_grid import LEGEND, NodeGrid, NodeMark


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding)

    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined, no-any-return]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_a_line_for_each_caption() -> None:
    stream = io.StringIO()
    grid = NodeGrid(stream)
    grid.draw({"b": NodeMark.NEW, "a": NodeMark.OLD}, "one")
    grid.draw({"a": NodeMark.GOING, "b": NodeMark.NEW}, "one")
    grid.draw({"a": NodeMark.NEW, "b": NodeMark.NEW}, "two")
    assert stream.getvalue() == "oN  one\nNN  two\n"


def test_a_terminal_is_redrawn_in_place() -> None:
    stream = Terminal()
    grid = NodeGrid(stream)
    grid.draw({"a": NodeMark.OLD}, "one")
    grid.draw({"a": NodeMark.NEW}, "two")
    assert stream.getvalue().count("\x1b[2A\x1b[J") == 1


def test_a_line_that_was_said_stays_when_the_picture_is_drawn_again() -> None:
    stream = Terminal()
    grid = NodeGrid(stream)
    grid.draw({"a": NodeMark.OLD}, "one")
    grid.say("hello")
    grid.draw({"a": NodeMark.NEW}, "two")
    assert "\x1b[2A" not in stream.getvalue()


def test_a_note_is_indented_and_wrapped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "13")
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        NodeGrid(stream).note("seven of seven")
    assert terminal.getvalue() == "   seven of\n   seven\n"
    assert pipe.getvalue() == "   seven of seven\n"


def test_every_mark_is_explained() -> None:
    assert set(LEGEND) == set(NodeMark)
    assert len({mark.value[0] for mark in NodeMark}) == len(NodeMark)


def test_a_narrow_terminal_gets_shorter_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "13")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    NodeGrid(stream).draw(dict.fromkeys("abcdefg", NodeMark.OLD), "seven of seven")
    assert stream.getvalue() == "   ○ ○ ○ ○ ○\n   ○ ○\n   seven of\n   seven\n"


def test_colours_and_symbols_are_used_only_where_the_terminal_supports_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured, latin = Terminal(), Terminal("latin-1")
    NodeGrid(coloured).draw({"a": NodeMark.NEW}, "one")
    assert "\x1b[32m●" in coloured.getvalue()
    NodeGrid(latin).draw({"a": NodeMark.NEW}, "one")
    assert "\x1b[32mN" in latin.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    NodeGrid(dumb).draw({"a": NodeMark.NEW}, "one")
    assert dumb.getvalue() == "N  one\n"
