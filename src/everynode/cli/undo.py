"""`everynode undo`: put the template of an earlier revision into a DaemonSet again."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options


@click.command("undo")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@click.option(
    "--to-revision",
    type=click.IntRange(1),
    metavar="N",
    help="The revision to go back to; the one before the current by default.",
)
@change_options
def command(*, names: tuple[str, ...], to_revision: int | None, options: ChangeOptions) -> None:
    """Go back to an earlier revision of DaemonSet NAME.

    Its template becomes the current one again, and is rolled out as the strategy says; nodes that
    still have it are not touched. `everynode history NAME` lists the revisions.

    \b
    The one before:     everynode undo agent
    A certain one:      everynode undo agent --to-revision 3
    What would change:  everynode history agent --diff 4 3
    """
    # Late, as all that --help does not need.
    from everynode.change.edits import Edit, Object
    from everynode.change.revisions import edit_to_revision
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        now = cluster.clock.now()
        return await edit_to_revision(cluster.client, found.ds, stored, to_revision, now)

    typed = f"--to-revision {to_revision}" if to_revision else ""
    run_change(names, options, edit, verb="undo", typed=typed)
