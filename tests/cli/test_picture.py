from __future__ import annotations

import io

import pytest

from everynode.cli.picture import LEGEND, Mark, Picture


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


def test_a_pipe_gets_a_line_per_change_and_none_without() -> None:
    stream = io.StringIO()
    picture = Picture(stream)
    picture.draw({"b": Mark.NEW, "a": Mark.OLD}, "one")
    picture.draw({"a": Mark.OLD, "b": Mark.NEW}, "one")
    picture.draw({"a": Mark.NEW, "b": Mark.NEW}, "two")
    assert stream.getvalue() == "oN  one\nNN  two\n"


def test_a_terminal_is_redrawn_in_place() -> None:
    stream = Terminal()
    picture = Picture(stream)
    picture.draw({"a": Mark.OLD}, "one")
    picture.draw({"a": Mark.NEW}, "two")
    assert stream.getvalue().count("\x1b[2A\x1b[J") == 1


def test_a_line_that_was_said_stays_when_the_picture_is_drawn_again() -> None:
    stream = Terminal()
    picture = Picture(stream)
    picture.draw({"a": Mark.OLD}, "one")
    picture.say("hello")
    picture.draw({"a": Mark.NEW}, "two")
    assert "\x1b[2A" not in stream.getvalue()


def test_every_mark_is_explained() -> None:
    assert set(LEGEND) == set(Mark)
    assert len({mark.value[0] for mark in Mark}) == len(Mark)


def test_a_narrow_terminal_gets_shorter_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "13")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Picture(stream).draw(dict.fromkeys("abcdefg", Mark.OLD), "seven of seven")
    assert stream.getvalue() == "   ○ ○ ○ ○ ○\n   ○ ○\n   seven of\n   seven\n"


def test_colours_and_signs_are_for_those_who_can_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured, latin = Terminal(), Terminal("latin-1")
    Picture(coloured).draw({"a": Mark.NEW}, "one")
    assert "\x1b[32m●" in coloured.getvalue()
    Picture(latin).draw({"a": Mark.NEW}, "one")
    assert "\x1b[32mN" in latin.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    Picture(dumb).draw({"a": Mark.NEW}, "one")
    assert dumb.getvalue() == "N  one\n"
