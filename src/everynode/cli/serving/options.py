"""Options of commands that run a cluster. Nothing else is imported, so that --help is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def speed_option(default: float) -> Callable[[Function], Function]:
    """Give a command --speed."""
    return click.option(
        "--speed",
        type=float,
        metavar="X",
        default=default,
        show_default=True,
        callback=_check_speed,
        help="How many times faster than in reality pods start, stop and fail.",
    )


def _check_speed(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0.001 <= value <= 10_000:  # also refuses nan
        raise click.BadParameter("give a number from 0.001 to 10000")
    return value
