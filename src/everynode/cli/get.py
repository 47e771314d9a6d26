"""`everynode get`: one line for each DaemonSet of both kinds, and how its rollout stands."""

from __future__ import annotations

import sys

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option


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
    from everynode.cli.access.cluster import Cluster, open_cluster
    from everynode.cli.access.daemonset_names import find_daemonset, full_name, list_daemonsets
    from everynode.cli.rollout.documents import rollout_document
    from everynode.cli.rollout.lines import fleet_table, permission_lines
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style
    from everynode.inspect.evaluate import evaluate, is_complete, summarise
    from everynode.inspect.fleet import FleetView
    from everynode.inspect.snapshot import SnapshotReader

    async def read_fleets(cluster: Cluster) -> tuple[list[FleetView], list[str]]:
        missing: list[str] = []
        if names:
            found = [(await find_daemonset(cluster, name)).ds for name in names]
        else:
            found, missing = await list_daemonsets(
                cluster, selector=selector, everywhere=all_namespaces
            )
        reader = SnapshotReader(cluster.client)
        fleets = []
        for ds in found:
            if output == "name" or is_complete(ds):
                fleets.append(summarise(ds))
            else:
                fleets.append(evaluate(await reader.read(ds), cluster.clock.now()).fleet)
        return fleets, missing

    async with open_cluster(access) as cluster:
        fleets, missing = await read_fleets(cluster)
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
