from __future__ import annotations

import io

from everynode.cli.terminal.progress import Progress
from everynode.clock import SystemClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Hand(SystemClock):
    """A clock that is moved by hand."""

    now_at = 0.0

    def monotonic(self) -> float:
        return self.now_at


def test_a_pipe_gets_ten_lines_at_most() -> None:
    stream = io.StringIO()
    progress = Progress(stream, Hand(), total=1000, what="seeds")
    for done in range(1001):
        progress.show(done, "2 broken")
    progress.end()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "100 of 1,000 seeds · 2 broken"
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_a_bar_that_is_taken_away_in_the_end() -> None:
    stream = Terminal()
    progress = Progress(stream, Hand(), total=4, what="seeds")
    progress.show(1)
    progress.show(4)
    progress.end()
    drawn = stream.getvalue().split("\r\x1b[K")
    assert drawn[0] == drawn[-1] == ""
    assert drawn[1].count("━") == drawn[2].count("━") == 30
    assert drawn[1].endswith("1 of 4 seeds")


def test_a_terminal_is_not_redrawn_too_often() -> None:
    stream, clock = Terminal(), Hand()
    progress = Progress(stream, clock, total=1000, what="seeds")
    for done in range(100):
        clock.now_at += 0.01
        progress.show(done)
    assert 8 <= stream.getvalue().count("\r") <= 11


def test_what_is_left_is_guessed_from_what_it_took() -> None:
    stream, clock = io.StringIO(), Hand()
    progress = Progress(stream, clock, total=10, what="seeds")
    clock.now_at = 30.0
    progress.show(3)
    assert stream.getvalue() == "3 of 10 seeds · about 1 min 10 s left\n"
