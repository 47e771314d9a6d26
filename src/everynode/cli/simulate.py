"""`everynode simulate`: every promise checked in virtual time, and rollouts before they happen."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from everynode.cli.errors import WrongUsage

SEEDS: Final = 100
# Options that only mean something beside others.
_OF_FORECASTS: Final = (
    "nodes",
    "fail",
    "notready",
    "pull",
    "start",
    "stop",
    "hook",
    "label",
    "seed",
)


@click.command("simulate")
@click.option(
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="Forecast the rollout of a manifest; given twice, from the first to the second.",
)
@click.option(
    "--nodes", default=100, show_default=True, type=click.IntRange(1, 10_000), help="On how many."
)
@click.option(
    "--fail", default="0", metavar="N|N%", help="Nodes where the new version never becomes ready."
)
@click.option(
    "--notready", default="0", metavar="N|N%", help="Nodes that are NotReady from the start."
)
@click.option("--pull", default="5s", show_default=True, help="How long a node pulls an image.")
@click.option(
    "--start", default="20s", show_default=True, help="From there until the pod is ready."
)
@click.option("--stop", default="10s", show_default=True, help="Until a deleted pod is gone.")
@click.option("--hook", default="0s", show_default=True, help="Until a preDelete hook lets go.")
@click.option(
    "--label", multiple=True, metavar="KEY=VALUE[:N|:N%]", help="Label all or some of the nodes."
)
@click.option("--seed", default=1, show_default=True, help="Draws the nodes with bad luck.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help=f"Play so many random worlds; {SEEDS} if nothing else is asked for.",
)
@click.option(
    "--from",
    "first",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="The first of them.",
)
@click.option("--list", "listed", is_flag=True, help="List the reference scenarios.")
@click.option("--scenario", default="", metavar="NAME", help="Play one, and print what happens.")
@click.option(
    "--crash-points", is_flag=True, help="Kill the controller at every request of the scenarios."
)
@click.option("--stale", is_flag=True, help="With that, let its watches lag after each restart.")
@click.option(
    "--replay", default="", metavar="FILE", help="Play a replay file, and print what happens."
)
@click.option(
    "--save",
    "folder",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where replay files are written.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes; as many as cores by default.")
@click.option("-o", "output", type=click.Choice(["json"]), help="Print JSON instead of text.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """See a rollout before it happens, and look for broken promises in simulated clusters.

    With a manifest this is a forecast. The DaemonSet is installed on a simulated fleet, and then
    updated by the very controller that would update it on yours: how long does it take, how many
    nodes are down at once, and what if some of them fail?

    \b
      everynode simulate -f agent.yaml --nodes 500 --fail 3% --notready 10
      everynode simulate -f running.yaml -f next.yaml --start 45s

    Without one, random worlds are played in which everything goes wrong that can: crashes, lost
    answers, stale views, dead nodes. Every promise is checked at every step. What breaks one is
    shrunk, and kept in a file that plays it again.

    \b
      everynode simulate --seeds 2000
      everynode simulate --crash-points --scenario surge
      everynode simulate --replay replay-seed-1234.json

    The same question has the same answer, on every machine. Exit code 1: a promise was broken.
    """
    given = [name for name in options if _is_given(context, name)]
    _check(given)
    with _no_logs():
        _answer(options)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _check(given: list[str]) -> None:
    """Refuse what cannot be meant."""
    asked: list[str] = [name for name in _QUESTIONS if name in given]
    if asked[-2:] == ["crash_points", "scenario"]:
        asked.pop()
    if len(asked) > 1:
        first, second = (_NAMES.get(name, f"--{name}") for name in asked[:2])
        raise WrongUsage(f"{first} and {second} are two questions: ask one after the other")
    for name in given:
        if name in _OF_FORECASTS and "files" not in given:
            raise WrongUsage(f"--{name} is for forecasts: give a manifest with -f")
    if "stale" in given and "crash_points" not in given:
        raise WrongUsage("--stale goes with --crash-points")


_QUESTIONS: Final = ("files", "seeds", "listed", "replay", "crash_points", "scenario")
_NAMES: Final = {"files": "-f", "listed": "--list", "crash_points": "--crash-points"}


def _answer(options: dict[str, Any]) -> None:
    """Import late: what is simulated needs nearly everything, its help needs nothing."""
    as_json = options["output"] == "json"
    if options["files"]:
        from everynode.cli import prospect

        prospect.show(options, as_json=as_json)
    else:
        from everynode.cli import worlds

        worlds.answer({**options, "seeds": options["seeds"] or SEEDS}, as_json=as_json)


@contextmanager
def _no_logs() -> Iterator[None]:
    """What simulated controllers log is nobody's business."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)
