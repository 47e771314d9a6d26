from __future__ import annotations

import io

from everynode.cli.picture import LEGEND, Mark, Picture


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
