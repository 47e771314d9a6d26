"""`everynode resume`: let paused updates of DaemonSets go on."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options


@click.command("resume")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@change_options
def command(*, names: tuple[str, ...], options: ChangeOptions) -> None:
    """Resume the update of Advanced DaemonSet NAME.

    \b
    everynode resume agent
    everynode resume -l team=storage --yes
    """
    # Late, as all that --help does not need.
    from everynode.change.edits import Edit, Object, set_paused
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        return set_paused(stored, paused=False)

    run_change(names, options, edit, verb="resume")
