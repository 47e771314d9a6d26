"""`everynode migrate`: make a native DaemonSet an Advanced one, or back, and keep its pods."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset_and_kind
from everynode.cli.access.options import ClusterOptions, cluster_options


@click.command("migrate")
@click.argument("name", metavar="ds/NAME|ads/NAME", shell_complete=complete_daemonset_and_kind)
@click.option("--drop", is_flag=True, help="Leave out what the other kind has no field for.")
@click.option("--dry-run", is_flag=True, help="Check everything, and change nothing.")
@cluster_options
def command(*, name: str, drop: bool, dry_run: bool, access: ClusterOptions) -> None:
    """Make a native DaemonSet an Advanced one, or back, without restarting a pod.

    Checked before: the rollout is complete, the other kind has all fields, the server accepts the
    object and would store the same template, a controller serves that kind. Then the DaemonSet is
    deleted, its pods stay, and the new one adopts them; at the end the pods are compared. If it is
    interrupted, the same command goes on from there.

    \b
    To the Advanced kind:   everynode migrate ds/agent
    And back:               everynode migrate ads/agent
    Only look:              everynode migrate ds/agent --dry-run
    """
    import asyncio  # late, as all that --help does not need

    asyncio.run(_migrate(name, access, drop=drop, dry_run=dry_run))


async def _migrate(text: str, access: ClusterOptions, *, drop: bool, dry_run: bool) -> None:
    # Late, as all that --help does not need.
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import parse_name
    from everynode.cli.migration.run import Migration
    from everynode.errors import UsageError

    wanted = parse_name(text)
    if wanted.flavour is None:
        raise UsageError(
            f"give ds/{wanted.name} to make it an Advanced DaemonSet, or ads/{wanted.name} to make "
            "it a native one"
        )
    async with open_cluster(access) as cluster:
        migration = Migration(cluster, wanted.name, wanted.flavour, drop=drop)
        await (migration.check() if dry_run else migration.run())
