"""`everynode why`: why a node stands as it does in a rollout, and which command helps."""

from __future__ import annotations

import sys

import click

from everynode.cli.access.completion import complete_daemonset, complete_node
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option


@click.command("why")
@click.argument("node", shell_complete=complete_node)
@click.argument("name", required=False, default="", shell_complete=complete_daemonset)
@click.option("-A", "--all-namespaces", is_flag=True, help="Look at the DaemonSets everywhere.")
@output_option("json", "yaml")
@cluster_options
def command(
    *, node: str, name: str, all_namespaces: bool, output: str, access: ClusterOptions
) -> None:
    """Explain how NODE stands in the rollout of DaemonSet NAME, and what helps.

    The chain: whether it should have a pod, whether the update may reach it, which revision it gets
    and why, its pod, what it waits for, its place in the queue, the pod's last error and events.
    Without NAME every DaemonSet of the namespace is looked at. The rules that are cited (R1 to R9)
    are in docs/rules.md.

    \b
    One rollout:               everynode why node-0006 ads/agent
    All of a namespace:        everynode why node-0006 -n kube-system
    """
    if name and all_namespaces:
        raise click.UsageError("give NAME or --all-namespaces, not both")
    import asyncio  # late, as all that --help does not need

    asyncio.run(_why(access, node, name, output, all_namespaces=all_namespaces))


async def _why(
    access: ClusterOptions, node: str, name: str, output: str, *, all_namespaces: bool
) -> None:
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import find_daemonset, list_daemonsets
    from everynode.cli.main import all_commands
    from everynode.cli.rollout.explanation import explanation_lines, read_reports, report_document
    from everynode.cli.rollout.lines import permission_lines
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style
    from everynode.errors import UserError

    async with open_cluster(access) as cluster:
        missing: list[str] = []
        if name:
            sets = [(await find_daemonset(cluster, name)).ds]
        else:
            sets, missing = await list_daemonsets(cluster, everywhere=all_namespaces)
        if not sets:
            where = "the cluster" if all_namespaces else f"namespace {cluster.namespace}"
            raise UserError(f"there are no DaemonSets in {where}; `everynode get -A` lists all")
        reports = await read_reports(cluster, sets, node, all_commands())
        now = cluster.clock.now()
    missing += [each for report in reports for each in report.missing]
    for line in permission_lines(missing):
        click.echo(line, err=True)
    if not reports:
        raise UserError(f"there is no node {node}; `kubectl get nodes` lists all")
    if output:
        print_document({"items": [report_document(report) for report in reports]}, output)
        return
    style = Style(sys.stdout)
    click.echo("\n".join(explanation_lines(reports, style, now)))
