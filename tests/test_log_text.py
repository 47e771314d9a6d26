from __future__ import annotations

from everynode.log_text import clean, describe


def test_nothing_in_a_text_of_others_can_move_the_cursor_or_end_the_line() -> None:
    assert clean("a\nb\x1b[2J\x9b\u2028\u202e\udcff\u00e9") == (
        "a\\nb\\x1b[2J\\x9b\\u2028\\u202e\\udcff\u00e9"
    )


def test_long_texts_are_cut() -> None:
    assert len(clean("x" * 10_000)) == 303


def test_error_is_told_in_one_line_with_its_place() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        told = describe(error)
    assert told.startswith("ValueError: first\\nsecond (test_log_text.py:")
