"""`everynode simulate`: rollout forecasts, and checks of all promises in simulated clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from everynode.cli.terminal.output import forecast_file_options
from everynode.errors import UsageError

SEEDS: Final = 100
# Options that need -f.
_FORECAST_OPTIONS: Final = (
    "nodes",
    "fail",
    "fail_how",
    "notready",
    "pull",
    "start",
    "stop",
    "hook",
    "label",
    "seed",
    "compare",
    "html",
    "svg",
)


@click.command("simulate")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="Forecast the rollout of a manifest; given twice, from the first to the second.",
)
@click.option(
    "--nodes",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="How many nodes the simulated cluster has.",
)
@click.option("--fail", default="0", metavar="N|N%", help="Nodes where the new version fails.")
@click.option(
    "--fail-how",
    type=click.Choice(["crash", "never-ready", "pull"]),
    default="never-ready",
    show_default=True,
    help="How it fails there: it crashes, is never ready, or its image cannot be pulled.",
)
@click.option(
    "--notready", default="0", metavar="N|N%", help="Nodes that are NotReady from the start."
)
@click.option(
    "--pull",
    default="5s",
    metavar="TIME",
    show_default=True,
    help="How long a node pulls an image.",
)
@click.option(
    "--start",
    default="20s",
    metavar="TIME",
    show_default=True,
    help="From there until the pod is ready.",
)
@click.option(
    "--stop", default="10s", metavar="TIME", show_default=True, help="Until a deleted pod is gone."
)
@click.option(
    "--hook",
    default="0s",
    metavar="TIME",
    show_default=True,
    help="Until a preDelete hook lets go.",
)
@click.option(
    "--label", multiple=True, metavar="KEY=VALUE[:N|:N%]", help="Label all or some of the nodes."
)
@click.option("--seed", default=1, show_default=True, help="Chooses which nodes fail.")
@click.option(
    "--compare",
    multiple=True,
    metavar="FILE|NAME=VALUE",
    help="A second forecast beside the first: of another manifest, or with other settings: "
    "maxUnavailable, maxSurge, partition, minReadySeconds, or one of the options above.",
)
@forecast_file_options
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(min=1),
    help=f"How many random worlds to play; {SEEDS} if no other option chooses what to do.",
)
@click.option(
    "--from",
    "first",
    metavar="N",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="The first seed.",
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
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 256),
    help="Processes; as many as cores by default.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "svg", "html"]),
    help="Print JSON instead of text; of a forecast also a chart (svg) or a page that plays it.",
)
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Forecast a rollout, or search simulated clusters for broken promises.

    With a manifest this is a forecast. The DaemonSet is installed on a simulated fleet, and then
    updated by the same controller that updates it on your cluster: how long does it take, how
    many nodes are down at once, and what if some of them fail?

    \b
      everynode simulate -f agent.yaml --nodes 500 --fail 3% --notready 10
      everynode simulate -f running.yaml -f next.yaml --start 45s
      everynode simulate -f agent.yaml --compare maxUnavailable=10%
      everynode simulate -f agent.yaml --compare faster.yaml -o svg > forecast.svg
      everynode simulate -f agent.yaml --html forecast.html

    Without one, random worlds with faults are played: crashes, lost answers, stale caches, dead
    nodes. Every promise is checked at every step. A world that breaks one is shrunk, and saved in
    a file that replays it.

    \b
      everynode simulate --seeds 2000
      everynode simulate --crash-points --scenario surge
      everynode simulate --replay replay-seed-1234.json

    The same options give the same result on every machine. Exit code 1: a promise was broken.
    """
    given = [name for name in options if _is_given(context, name)]
    _check_combination(given)
    from everynode.log import logging_disabled  # late, as all that --help does not need

    with logging_disabled():
        _dispatch(options)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _check_combination(given: list[str]) -> None:
    """Raise WrongUsage for options that do not go together."""
    modes: list[str] = [name for name in _MODES if name in given]
    if modes[-2:] == ["crash_points", "scenario"]:
        modes.pop()
    if len(modes) > 1:
        first, second = (_FLAGS.get(name, f"--{name}") for name in modes[:2])
        raise UsageError(f"{first} and {second} cannot be combined: run one after the other")
    for name in given:
        if name in _FORECAST_OPTIONS and "files" not in given:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} is for forecasts: give a manifest with -f")
    if "stale" in given and "crash_points" not in given:
        raise UsageError("--stale goes with --crash-points")


_MODES: Final = ("files", "seeds", "listed", "replay", "crash_points", "scenario")
_FLAGS: Final = {"files": "-f", "listed": "--list", "crash_points": "--crash-points"}


def _dispatch(options: dict[str, Any]) -> None:
    """Run the chosen mode; imported here because --help must not import the simulator."""
    if options["files"]:
        from everynode.cli.simulation.outputs import print_forecasts

        print_forecasts(options)
    elif options["output"] in ("svg", "html"):
        raise UsageError(f"-o {options['output']} is for forecasts: give a manifest with -f")
    else:
        from everynode.cli.simulation import campaign

        as_json = options["output"] == "json"
        campaign.run({**options, "seeds": options["seeds"] or SEEDS}, as_json=as_json)
