"""Log: one line per event, text on a terminal and JSON elsewhere."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TextIO

import msgspec

from everynode.api.times import format_micro_time
from everynode.clock import Clock

ROOT: Final = "everynode"
_GREY, _YELLOW, _RED, _PLAIN = "\x1b[90m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
_COLOURS: Final = {logging.WARNING: _YELLOW, logging.ERROR: _RED, logging.CRITICAL: _RED}
_FIELDS: Final = "fields"
_MAX_FIELD_CHARACTERS: Final = 1000  # an API server's response can hold a whole object
# Characters that JSON does not escape and that change how a terminal shows a line: C1 controls,
# line separators, zero-width and bidirectional marks, lone surrogates.
_CONTROLS: Final = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
LEVELS: Final = ("debug", "info", "warning", "error")
# In a program that uses everynode as a library and sets up no logging, the lines go nowhere:
# without a handler Python writes warnings to stderr, without their fields.
logging.getLogger(ROOT).addHandler(logging.NullHandler())


class Log:
    """Logger of one part of the program: each line has a constant message and variable fields."""

    def __init__(self, part: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{part}")

    def is_enabled(self, level: int) -> bool:
        """Whether lines of that level are written."""
        return self._logger.isEnabledFor(level)

    def debug(self, message: str, **fields: object) -> None:
        """Log a detail that helps to debug."""
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        """Log an ordinary event."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        """Log a problem that a user should check; the process goes on."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        """Log an error."""
        self._write(logging.ERROR, message, fields)

    def _write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        if self.is_enabled(level):
            self._logger.log(level, "%s", message, extra={_FIELDS: fields})


class HumanFormat(logging.Formatter):
    """`12:34:56 Deleted pod  pod=n/p node=x because=Update`, coloured on a terminal."""

    def __init__(self, clock: Clock, *, colours: bool) -> None:
        super().__init__()
        self._clock = clock
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        time = format_micro_time(self._clock.now())[11:19]
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        fields = " ".join(f"{key}={_plain(value)}" for key, value in _fields(record).items())
        message = f"{level}{_one_line(record.getMessage())}"
        if self._colours:
            time, fields = f"{_GREY}{time}{_PLAIN}", f"{_GREY}{fields}{_PLAIN}" if fields else ""
            message = f"{_COLOURS.get(record.levelno, '')}{message}{_PLAIN}"
        return f"{time} {message}{f'  {fields}' if fields else ''}{_traceback(self, record)}"


class JsonFormat(logging.Formatter):
    """One JSON object per line."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": format_micro_time(self._clock.now()),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix(f"{ROOT}."),
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in _fields(record).items() if key not in line}
        traceback = _traceback(self, record)
        if traceback:
            line["traceback"] = traceback
        return _CONTROLS.sub(_in_json, _encode(line))


def set_up(stream: TextIO, clock: Clock, *, style: str = "auto", level: str = "info") -> None:
    """Send all log lines of the process to a stream; `style` is auto, human or json."""
    terminal = stream.isatty()
    human = style == "human" or (style == "auto" and terminal)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(HumanFormat(clock, colours=terminal) if human else JsonFormat(clock))
    # Our lines show neither source file, thread nor process. Finding these out for each record
    # costs as much as writing the line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    for before in list(root.handlers):
        root.removeHandler(before)
    root.addHandler(handler)
    # Libraries log warnings and errors only.
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())


@contextmanager
def logging_disabled() -> Iterator[None]:
    """Drop all log lines inside a `with` block: those of simulated controllers."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields: Mapping[str, object] = getattr(record, _FIELDS, {})
    return {key: _bound(value) for key, value in fields.items()}


def _bound(value: object) -> object:
    if isinstance(value, int | float):
        return value
    text = str(value)
    return text if len(text) <= _MAX_FIELD_CHARACTERS else f"{text[: _MAX_FIELD_CHARACTERS - 1]}…"


def _plain(value: object) -> str:
    text = str(value)
    simple = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if simple else _CONTROLS.sub(_in_json, json.dumps(text, ensure_ascii=False))


def _encode(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except UnicodeEncodeError:  # a lone surrogate, from bytes that are not UTF-8
        return json.dumps(line, ensure_ascii=True, default=str)


def _one_line(text: str) -> str:
    """Return a message with unprintable characters escaped: it may quote users' text."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _in_json(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return f"\n{formatter.formatException(record.exc_info)}" if record.exc_info else ""
