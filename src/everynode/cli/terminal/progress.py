"""Progress: a bar that is redrawn on a terminal, up to ten lines elsewhere."""

from __future__ import annotations

import shutil
from typing import Final, TextIO

from everynode.cli.terminal.text import format_duration
from everynode.clock import Clock

_REDRAW_INTERVAL: Final = 0.1  # seconds between two redraws
_WIDTH: Final = 30
_LINES: Final = 10  # most lines where the stream is no terminal
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Shows a count up to a total on a stream."""

    def __init__(self, stream: TextIO, clock: Clock, *, total: int, what: str) -> None:
        self._stream = stream
        self._clock = clock
        self._total = max(total, 1)
        self._what = what
        self._is_terminal = stream.isatty()
        self._began = clock.monotonic()
        self._drawn = -1.0
        self._lines_printed = 0

    def show(self, done: int, note: str = "") -> None:
        """Show the count and a note."""
        if self._is_terminal:
            self._draw(done, note)
        elif done * _LINES // self._total > self._lines_printed:
            self._lines_printed = done * _LINES // self._total
            self._stream.write(f"{self._text(done, note)}\n")
            self._stream.flush()

    def end(self) -> None:
        """Remove the bar."""
        if self._is_terminal:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def _draw(self, done: int, note: str) -> None:
        now = self._clock.monotonic()
        if now < self._drawn + _REDRAW_INTERVAL and done < self._total:
            return
        self._drawn = now
        full = done * _WIDTH // self._total
        bar = f"\x1b[32m{'━' * full}\x1b[90m{'━' * (_WIDTH - full)}\x1b[0m"
        room = shutil.get_terminal_size().columns - _WIDTH - 3
        self._stream.write(f"{_CLEAR}{bar}  {self._text(done, note)[:room]}")
        self._stream.flush()

    def _text(self, done: int, note: str) -> str:
        parts = [f"{done:,} of {self._total:,} {self._what}", note, self._describe_time_left(done)]
        return " · ".join(part for part in parts if part)

    def _describe_time_left(self, done: int) -> str:
        """Estimate of the time left at the pace so far; empty in the first two seconds."""
        gone = self._clock.monotonic() - self._began
        if not done or done >= self._total or gone < 2.0:
            return ""
        return f"about {format_duration(round(gone / done * (self._total - done)))} left"
