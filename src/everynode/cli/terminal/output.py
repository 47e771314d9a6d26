"""Output for programs and for browsers: their options, and documents as JSON and YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def output_option(*formats: str) -> Decorator:
    """Give a command -o with these formats; without it the value is an empty string."""
    wide = ", or with more columns (wide)" if "wide" in formats else ""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=None,
        callback=lambda context, parameter, value: value or "",
        help=f"Print for programs{wide}; the fields are in docs/command-line.md.",
    )


def forecast_file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that forecasts a rollout --html and --svg: files to write it to."""
    path = click.Path(dir_okay=False, path_type=Path)
    html = "Also write a page that plays the rollout in a browser, node by node."
    svg = "Also write a chart of nodes updated and down over time."
    with_svg = click.option("--svg", type=path, metavar="FILE", help=svg)(function)
    return click.option("--html", type=path, metavar="FILE", help=html)(with_svg)


def print_document(document: Any, form: str) -> None:
    """Print a document of plain values as json or yaml."""
    # Late: they take longer to import than a command's --help may take.
    if form == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
        return
    import yaml

    click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)
