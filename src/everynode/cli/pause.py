"""`everynode pause`: stop the updates of DaemonSets where they are."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options


@click.command("pause")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@change_options
def command(*, names: tuple[str, ...], options: ChangeOptions) -> None:
    """Pause the update of Advanced DaemonSet NAME.

    Nodes whose update has begun are finished; no other is begun. A pod that dies comes back at the
    revision it had.

    \b
    Stop it:    everynode pause agent
    Go on:      everynode resume agent
    Or back:    everynode undo agent && everynode resume agent
    """
    # Late, as all that --help does not need.
    from everynode.change.edits import Edit, Object, set_paused
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        return set_paused(stored, paused=True)

    run_change(names, options, edit, verb="pause")
