"""`everynode get`: one line for each DaemonSet of both kinds, and how its rollout stands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option

if TYPE_CHECKING:
    from everynode.api.daemonset import DaemonSet
    from everynode.cli.access.cluster import Cluster
    from everynode.inspect.fleet import FleetView


@click.command("get")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the DaemonSets everywhere.")
@click.option(
    "-l", "--selector", default="", metavar="QUERY", help="Only those with these labels: app=agent."
)
@output_option("json", "yaml", "name", "wide")
@cluster_options
def command(
    *,
    names: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    output: str,
    access: ClusterOptions,
) -> None:
    """List DaemonSets of both kinds and how their rollouts stand.

    A NAME may be bare, ads/NAME (Advanced) or ds/NAME (native). Of sets that are complete by their
    status only the status is read; for the others it is worked out from nodes, pods and revisions.

    \b
    Everything in the namespace:  everynode get
    In the whole cluster:         everynode get -A
    For a script:                 everynode get -A -o json
    """
    if names and (all_namespaces or selector):
        raise click.UsageError("give names, or --all-namespaces and --selector, not both")
    import asyncio  # late, as all that --help does not need

    asyncio.run(_get(access, names, selector, output, all_namespaces=all_namespaces))


async def _get(
    access: ClusterOptions,
    names: tuple[str, ...],
    selector: str,
    output: str,
    *,
    all_namespaces: bool,
) -> None:
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import full_name
    from everynode.cli.rollout.documents import rollout_document
    from everynode.cli.rollout.lines import fleet_table, permission_lines
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style

    async with open_cluster(access) as cluster:
        found, missing = await _find(cluster, names, selector, everywhere=all_namespaces)
        fleets = await _evaluate(cluster, found, by_status=output == "name")
        now = cluster.clock.now()
        namespace = cluster.namespace
    missing += [each for fleet in fleets for each in fleet.missing]
    for line in permission_lines(missing):
        click.echo(line, err=True)
    if output in ("json", "yaml"):
        print_document({"items": [rollout_document(fleet) for fleet in fleets]}, output)
    elif output == "name":
        for fleet in fleets:
            click.echo(full_name(fleet.ds))
    elif not fleets:
        where = "the cluster" if all_namespaces else f"namespace {namespace}"
        click.echo(f"No DaemonSets found in {where}.", err=True)
    else:
        style = Style(sys.stdout)
        table = fleet_table(
            fleets, style, now, wide=output == "wide", with_namespace=all_namespaces
        )
        click.echo("\n".join(table))


async def _find(
    cluster: Cluster, names: tuple[str, ...], selector: str, *, everywhere: bool
) -> tuple[list[DaemonSet], list[str]]:
    """Return the DaemonSets that are meant, and the permissions that are missing to list them."""
    from everynode.cli.access.daemonset_names import find_daemonset, list_daemonsets

    if names:
        return [(await find_daemonset(cluster, name)).ds for name in names], []
    return await list_daemonsets(cluster, selector=selector, everywhere=everywhere)


async def _evaluate(
    cluster: Cluster, daemonsets: list[DaemonSet], *, by_status: bool
) -> list[FleetView]:
    """Return how each rollout stands; only those that are not complete are read in full."""
    from everynode.inspect.evaluate import evaluate, is_complete, summarise
    from everynode.inspect.snapshot import SnapshotReader

    reader = SnapshotReader(cluster.client)
    fleets = []
    for ds in daemonsets:
        if by_status or is_complete(ds):
            fleets.append(summarise(ds))
        else:
            fleets.append(evaluate(await reader.read(ds), cluster.clock.now()).fleet)
    return fleets
