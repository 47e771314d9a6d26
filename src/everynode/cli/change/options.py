"""Options of commands that change DaemonSets. Nothing else is imported, so that --help is quick."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """Which DaemonSets are changed, and how."""

    access: ClusterOptions
    selector: str = ""
    all_namespaces: bool = False
    dry_run: str = "none"
    yes: bool = False
    output: str = ""


def change_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of every change; it gets them as `options`: ChangeOptions."""

    @functools.wraps(function)
    def packed(
        *args: Any,
        access: ClusterOptions,
        selector: str,
        all_namespaces: bool,
        dry_run: str,
        yes: bool,
        output: str,
        **rest: Any,
    ) -> Any:
        options = ChangeOptions(
            access=access,
            selector=selector,
            all_namespaces=all_namespaces,
            dry_run=dry_run,
            yes=yes,
            output=output,
        )
        return function(*args, options=options, **rest)

    decorated = cluster_options(packed)
    for option in (
        output_option("name", "json", "yaml"),
        click.option(
            "-y", "--yes", is_flag=True, help="Change several DaemonSets without being asked."
        ),
        click.option(
            "--dry-run",
            type=click.Choice(["none", "client", "server"]),
            default="none",
            show_default=True,
            help="Print what would change; `server` lets the API server check it, too.",
        ),
        click.option("-A", "--all-namespaces", is_flag=True, help="With -l: in all namespaces."),
        click.option(
            "-l",
            "--selector",
            default="",
            metavar="QUERY",
            help="Instead of a name: all with these labels, such as team=storage.",
        ),
    ):
        decorated = option(decorated)
    return decorated
