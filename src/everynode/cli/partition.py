"""`everynode partition`: how many nodes keep the version they have."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options


def _parse(context: click.Context, parameter: click.Parameter, value: str) -> int | str:
    from everynode.change.edits import parse_partition  # late, as all that --help does not need
    from everynode.errors import UserError

    try:
        return parse_partition(value)
    except UserError as error:
        raise click.BadParameter(str(error)) from None


@click.command("partition")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_daemonset)
@click.argument("partition", metavar="NODES|PERCENT", callback=_parse)
@change_options
def command(*, names: tuple[str, ...], partition: int | str, options: ChangeOptions) -> None:
    """Hold back NODES, or PERCENT of the nodes, of Advanced DaemonSet NAME.

    They keep the version they have; the others are updated, by name from the last to the first.
    A percentage is counted anew when nodes join or leave; with a number, every node that joins
    means one more that is updated.

    \b
    A canary on a tenth:   everynode partition agent 90%
    Half of the nodes:     everynode partition agent 50%
    All of them:           everynode partition agent 0
    """
    # Late, as all that --help does not need.
    from everynode.change.edits import Edit, Object, set_partition
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        return set_partition(stored, partition)

    run_change(names, options, edit, verb="partition", typed=str(partition))
