"""`everynode undo`: put the template of an earlier revision into a DaemonSet again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.change.options import ChangeOptions, change_options

if TYPE_CHECKING:
    from everynode.cli.change.edits import Object
    from everynode.inspect.fleet import RevisionInfo


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
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.edits import Edit, go_back
    from everynode.cli.change.run import run_change
    from everynode.errors import UserError
    from everynode.inspect.evaluate import evaluate
    from everynode.inspect.snapshot import SnapshotReader
    from everynode.kube.permissions import missing_permissions

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        snapshot = await SnapshotReader(cluster.client).read_history(found.ds, with_pods=False)
        if snapshot.revisions is None:
            raise missing_permissions(list(snapshot.missing))
        revisions = evaluate(snapshot, cluster.clock.now()).fleet.revisions
        chosen = choose(revisions, stored, to_revision)
        if chosen is None:
            known = ", ".join(str(each.number) for each in revisions) or "none"
            wanted = f"no revision {to_revision}" if to_revision else "no earlier revision"
            raise UserError(f"{found.short_name} has {wanted}; there are: {known}")
        return go_back(stored, chosen.template, number=chosen.number, cause=chosen.cause)

    typed = f"--to-revision {to_revision}" if to_revision else ""
    run_change(names, options, edit, verb="undo", typed=typed)


def choose(
    revisions: tuple[RevisionInfo, ...], stored: Object, number: int | None
) -> RevisionInfo | None:
    """Return the revision of that number, or the newest that is not the current template."""
    from everynode.api.template_equality import normalise

    if number is not None:
        return next((each for each in revisions if each.number == number), None)
    current = normalise(stored["spec"]["template"])
    others = [each for each in revisions if each.template and normalise(each.template) != current]
    return max(others, key=lambda each: each.number, default=None)
