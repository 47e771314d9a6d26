from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from everynode.log import Log, logging_disabled, set_up
from tests.support.scripted_server import ManualClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("everynode")
    before = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def test_machines_get_one_json_object_per_line() -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock())
    Log("pods").info("Deleted pod", pod="n/p", node="x", because="Update", took=0.5)
    assert json.loads(stream.getvalue()) == {
        "time": "2023-11-14T22:13:20.000000Z",
        "level": "info",
        "part": "pods",
        "message": "Deleted pod",
        "pod": "n/p",
        "node": "x",
        "because": "Update",
        "took": 0.5,
    }


def test_people_get_a_short_line() -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock(), style="human")
    Log("pods").info("Deleted pod", pod="n/p", because="Update")
    Log("pods").warning("Create refused", error='exceeded quota "q"\nsorry')
    assert stream.getvalue().splitlines() == [
        "22:13:20 Deleted pod  pod=n/p because=Update",
        '22:13:20 WARNING: Create refused  error="exceeded quota \\"q\\"\\nsorry"',
    ]


def test_terminals_get_colours() -> None:
    stream = Terminal()
    set_up(stream, ManualClock())
    Log("pods").error("Broken")
    assert "\x1b[31mERROR: Broken\x1b[0m" in stream.getvalue()


def test_json_can_be_asked_for_on_a_terminal() -> None:
    stream = Terminal()
    set_up(stream, ManualClock(), style="json")
    Log("pods").info("Hello", error=ValueError("odd"))
    assert json.loads(stream.getvalue())["error"] == "odd"


def test_fields_cannot_pretend_to_be_the_message() -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock())
    Log("pods").info("Hello", level="critical")
    assert json.loads(stream.getvalue())["level"] == "info"


def test_quiet_levels_are_left_out() -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock(), level="warning")
    Log("pods").info("Hello")
    Log("pods").debug("Hello")
    logging.getLogger("aiohttp.access").info("GET /")
    assert stream.getvalue() == ""


def test_setting_up_twice_writes_each_line_once() -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock())
    set_up(stream, ManualClock())
    Log("pods").info("Hello")
    assert stream.getvalue().count("Hello") == 1


@pytest.mark.parametrize("style", ["human", "json"])
def test_tracebacks_are_kept(style: str) -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock(), style=style)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("everynode.x").exception("Failed")
    assert "ValueError: odd" in stream.getvalue()


def test_no_field_holds_a_whole_object() -> None:
    for style in ("human", "json"):
        stream = io.StringIO()
        set_up(stream, ManualClock(), style=style)
        Log("pods").warning("Cannot create pod", error="{'spec': 1}" * 10_000, took=0.5)
        assert len(stream.getvalue()) < 1500


@pytest.mark.parametrize("style", ["human", "json"])
def test_texts_of_others_cannot_forge_lines_or_steer_a_terminal(style: str) -> None:
    stream = io.StringIO()
    set_up(stream, ManualClock(), style=style)
    odd = 'a\n22:13:20 forged\r\x1b[2J\x7f\x9b31m\u2028\u202e\udcff"'
    Log("pods").warning("Create refused", error=odd)
    logging.getLogger("everynode.apiserver").error("request failed: %s", odd)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    if style == "json":
        assert [json.loads(line)["level"] for line in lines[:2]] == ["warning", "error"]


def test_lines_are_dropped_only_while_logging_is_disabled(caplog: pytest.LogCaptureFixture) -> None:
    with logging_disabled():
        Log("test").warning("dropped")
    Log("test").warning("kept")
    assert [record.getMessage() for record in caplog.records] == ["kept"]
