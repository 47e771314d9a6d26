"""`everynode plan`: how a change would be rolled out on a cluster, before it is made."""

from __future__ import annotations

from typing import Any

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import forecast_file_options, output_option


@click.command("plan")
@click.argument("name", default="", shell_complete=complete_daemonset)
@click.option(
    "-f",
    "--filename",
    "file",
    default="",
    metavar="FILE",
    help="The manifest to be applied, or - for standard input.",
)
@click.option(
    "--set-image",
    "images",
    multiple=True,
    metavar="CONTAINER=IMAGE",
    help="Plan this image; may be given several times, and * means all containers.",
)
@click.option("--max-unavailable", default="", metavar="N|N%", help="Plan with this budget.")
@click.option("--max-surge", default="", metavar="N|N%", help="Plan with this budget.")
@click.option(
    "--partition", default="", metavar="N|N%", help="Plan with this number of nodes held back."
)
@click.option("--nodes", "list_nodes", is_flag=True, help="Also list what happens on each node.")
@click.option("--pull", default="", metavar="TIME", help="Until the containers of a pod run.")
@click.option("--start", default="", metavar="TIME", help="From there until it is Ready.")
@click.option("--stop", default="", metavar="TIME", help="Until a deleted pod is gone.")
@click.option(
    "--hook",
    default="0s",
    show_default=True,
    metavar="TIME",
    help="Until a preDelete hook lets go.",
)
@click.option(
    "--dry-run/--no-dry-run",
    default=True,
    show_default=True,
    help="Let the API server check one pod of the new version; nothing is stored.",
)
@forecast_file_options
@output_option("json", "yaml", "wide")
@cluster_options
def command(*, access: ClusterOptions, output: str, **options: Any) -> None:
    """Show how a change of DaemonSet NAME would be rolled out, before you make it.

    The controller's own code plays it on virtual time, from the state in which your cluster is:
    its nodes, labels, taints and sick nodes, the pods and their revisions, a half-done rollout
    included. Nothing is changed, and your own rights to read suffice. How long pods take comes
    from the times of the pods that run.

    \b
    A new image:           everynode plan agent --set-image agent=registry.example/agent:1.1
    A manifest:            everynode plan -f agent.yaml
    What if:               everynode plan -f agent.yaml --max-unavailable 10% --start 2m
    How it goes on:        everynode plan agent
    Node by node:          everynode plan agent --set-image agent=agent:1.1 --nodes
    For a pull request:    everynode plan -f agent.yaml --html plan.html
    """
    if bool(name := options.pop("name")) == bool(file := options.pop("file")):
        either = "give the NAME of a DaemonSet, or a manifest with -f FILE"
        raise click.UsageError(f"{either}, not both" if name else either)
    # Late, as all that --help does not need.
    from everynode.cli.planning.run import PlanOptions, print_plan
    from everynode.log import logging_disabled

    with logging_disabled():  # the lines of the simulated controller
        print_plan(access, PlanOptions(name=name, file=file, output=output, **options))
