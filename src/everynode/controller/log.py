"""One line for everything that happened: for people on a terminal, JSON for machines elsewhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final, TextIO

import msgspec

from everynode.api.times import format_micro
from everynode.clock import Clock

ROOT: Final = "everynode"
_GREY, _YELLOW, _RED, _PLAIN = "\x1b[90m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
_COLOURS: Final = {logging.WARNING: _YELLOW, logging.ERROR: _RED, logging.CRITICAL: _RED}
_FIELDS: Final = "fields"
LEVELS: Final = ("debug", "info", "warning", "error")


class Log:
    """Writes lines of one part of the program: a message that never varies, and fields that do."""

    def __init__(self, part: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{part}")

    def is_heard(self, level: int) -> bool:
        """Whether a line of that level is written anywhere."""
        return self._logger.isEnabledFor(level)

    def debug(self, message: str, **fields: object) -> None:
        """Say what only somebody who looks for a fault wants to know."""
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        """Say what happened."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        """Say what somebody should look at; we go on."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        """Say what went wrong and should not have."""
        self._write(logging.ERROR, message, fields)

    def _write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        if self.is_heard(level):
            self._logger.log(level, "%s", message, extra={_FIELDS: fields})


class HumanFormat(logging.Formatter):
    """`12:34:56 Deleted pod  pod=n/p node=x because=Update`, with colours where they show."""

    def __init__(self, clock: Clock, *, colours: bool) -> None:
        super().__init__()
        self._clock = clock
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        time = format_micro(self._clock.now())[11:19]
        level = "" if record.levelno == logging.INFO else f"{record.levelname}: "
        fields = " ".join(f"{key}={_plain(value)}" for key, value in _fields(record).items())
        message = f"{level}{record.getMessage()}"
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
            "time": format_micro(self._clock.now()),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix(f"{ROOT}."),
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in _fields(record).items() if key not in line}
        traceback = _traceback(self, record)
        if traceback:
            line["traceback"] = traceback
        return msgspec.json.encode(line, enc_hook=str).decode()


def set_up(stream: TextIO, clock: Clock, *, style: str = "auto", level: str = "info") -> None:
    """Send all log lines of the process to a stream; `style` is auto, human or json."""
    terminal = stream.isatty()
    human = style == "human" or (style == "auto" and terminal)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(HumanFormat(clock, colours=terminal) if human else JsonFormat(clock))
    # What no line of ours says costs as much to find out as all the rest of the line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    for before in list(root.handlers):
        root.removeHandler(before)
    root.addHandler(handler)
    # Other people's libraries speak up only when something is wrong.
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields: Mapping[str, object] = getattr(record, _FIELDS, {})
    return fields


def _plain(value: object) -> str:
    text = str(value)
    simple = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if simple else json.dumps(text, ensure_ascii=False)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return f"\n{formatter.formatException(record.exc_info)}" if record.exc_info else ""
