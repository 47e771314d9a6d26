from __future__ import annotations

import pytest

from everynode.cli.errors import UserError, first_to_mend

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
    assert first_to_mend(error) is found


def test_what_nobody_can_mend_is_not_hidden() -> None:
    group = ExceptionGroup("", [ValueError(), ExceptionGroup("", [KeyError()])])
    assert first_to_mend(group) is group
