"""`everynode status`: the picture of one rollout, once or until it has ended."""

from __future__ import annotations

import sys

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option

_ZONE = "topology.kubernetes.io/zone"


@click.command("status")
@click.argument("name", shell_complete=complete_daemonset)
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Follow the rollout until it is complete, as far as declared, or stalled.",
)
@click.option(
    "--timeout",
    default="",
    metavar="TIME",
    help="With --watch: end with exit code 1 after this time, such as 10m.",
)
@click.option(
    "--group-by",
    default=_ZONE,
    show_default=True,
    metavar="LABEL",
    help="Draw the nodes in groups by this label.",
)
@click.option("--all-names", is_flag=True, help="Name all nodes that wait, not only three.")
@output_option("json", "yaml")
@cluster_options
def command(
    *,
    name: str,
    watch: bool,
    timeout: str,
    group_by: str,
    all_names: bool,
    output: str,
    access: ClusterOptions,
) -> None:
    """Draw the rollout of DaemonSet NAME: nodes, budget, pace, and what nodes wait for.

    It works with your own rights and without the controller's help. Exit code 1 means that the
    rollout is stalled or that --timeout is over; the other codes are in docs/command-line.md.

    \b
    Now:                       everynode status ads/agent
    Until it has ended:        everynode status agent --watch --timeout 30m
    In groups of another kind: everynode status agent --group-by node.kubernetes.io/instance-type
    """
    if timeout and not watch:
        raise click.UsageError("--timeout needs --watch")
    if output and watch:
        raise click.UsageError("-o prints one document: leave out --watch")
    import asyncio  # late, as all that --help does not need

    if watch:
        from everynode.cli.rollout.follow import FollowOptions, follow

        options = FollowOptions(name, timeout, group_by, all_names=all_names)
        sys.exit(asyncio.run(follow(access, options)))
    sys.exit(asyncio.run(_show(access, name, output, group_by, all_names=all_names)))


async def _show(
    access: ClusterOptions, name: str, output: str, group_by: str, *, all_names: bool
) -> int:
    """Print how the rollout stands; return the exit code."""
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import find_daemonset
    from everynode.cli.rollout.documents import rollout_document
    from everynode.cli.rollout.picture import fleet_picture
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style
    from everynode.inspect.fleet import RolloutState
    from everynode.inspect.rooms import evaluate_with_rooms
    from everynode.inspect.snapshot import SnapshotReader

    async with open_cluster(access) as cluster:
        found = await find_daemonset(cluster, name)
        snapshot = await SnapshotReader(cluster.client).read(found.ds)
        now = cluster.clock.now()
        fleet = (await evaluate_with_rooms(cluster.client, snapshot, now)).fleet
        where = cluster.where(fleet.ds.namespace)
    if output:
        print_document(rollout_document(fleet), output)
    else:
        style = Style(sys.stdout)
        picture = fleet_picture(
            fleet, style, now, group_by=group_by, all_names=all_names, where=where
        )
        click.echo("\n".join(picture))
    return 1 if fleet.state is RolloutState.STALLED else 0
