from __future__ import annotations

import pytest

from everynode.errors import UserError, first_user_error, replace_control_characters

MENDABLE = UserError("the port is taken")


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (MENDABLE, MENDABLE),
        (ExceptionGroup("", [ValueError(), ExceptionGroup("", [MENDABLE])]), MENDABLE),
        (ExceptionGroup("", [MENDABLE, UserError("and then")]), MENDABLE),
    ],
)
def test_what_a_user_can_mend_is_found_among_all_else(
    error: BaseException, found: BaseException
) -> None:
    assert first_user_error(error) is found


def test_a_group_without_a_user_error_is_returned_as_it_is() -> None:
    group = ExceptionGroup("", [ValueError(), ExceptionGroup("", [KeyError()])])
    assert first_user_error(group) is group


def test_a_message_cannot_command_the_terminal() -> None:
    assert replace_control_characters("a\x1b[31mé\x07\u202eb\nc\td") == "a?[31mé??b\nc\td"
