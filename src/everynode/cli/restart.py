"""`everynode restart`: restart every pod of DaemonSets, within their budgets."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options


@click.command("restart")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@change_options
def command(*, names: tuple[str, ...], options: ChangeOptions) -> None:
    """Restart every pod of DaemonSet NAME, within its maxUnavailable.

    Pods are recreated, also with InPlaceIfPossible.

    \b
    One DaemonSet:     everynode restart agent
    And follow it:     everynode restart agent && everynode status agent --watch
    """
    # Late, as all that --help does not need.
    from everynode.api.times import format_time
    from everynode.change.edits import Edit, Object, restart
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        return restart(stored, format_time(cluster.clock.now()))

    run_change(names, options, edit, verb="restart")
