"""`everynode history`: the revisions of a DaemonSet, one of them, or what two differ in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option

if TYPE_CHECKING:
    from everynode.inspect.fleet import RevisionInfo


@click.command("history")
@click.argument("name", shell_complete=complete_daemonset)
@click.option("--revision", type=int, metavar="N", help="Print the pod template of revision N.")
@click.option(
    "--diff", nargs=2, type=int, metavar="A B", help="Print what changed from revision A to B."
)
@output_option("json", "yaml", "wide")
@cluster_options
def command(
    *,
    name: str,
    revision: int | None,
    diff: tuple[int, int] | None,
    output: str,
    access: ClusterOptions,
) -> None:
    """List the revisions of DaemonSet NAME, oldest first, with images and change causes.

    The change cause is the annotation kubernetes.io/change-cause of the DaemonSet at that time.

    \b
    All revisions:        everynode history agent
    How many pods each:   everynode history agent -o wide
    One pod template:     everynode history agent --revision 3
    What changed:         everynode history agent --diff 2 3
    """
    if revision is not None and diff:
        raise click.UsageError("give --revision or --diff, not both")
    if (revision is not None or diff) and output:
        raise click.UsageError("-o is for the list: leave out --revision and --diff")
    import asyncio  # late, as all that --help does not need

    asyncio.run(_history(access, name, revision, diff, output))


async def _history(
    access: ClusterOptions,
    name: str,
    revision: int | None,
    diff: tuple[int, int] | None,
    output: str,
) -> None:
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import find_daemonset
    from everynode.cli.rollout.documents import revision_document
    from everynode.cli.rollout.lines import permission_lines, revision_table
    from everynode.cli.rollout.templates import diff_lines
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style
    from everynode.inspect.evaluate import evaluate
    from everynode.inspect.snapshot import SnapshotReader
    from everynode.inspect.templates import template_text
    from everynode.kube.permissions import missing_permissions

    async with open_cluster(access) as cluster:
        ds = (await find_daemonset(cluster, name)).ds
        reader = SnapshotReader(cluster.client)
        snapshot = await reader.read_history(ds, with_pods=output in ("json", "yaml", "wide"))
        now = cluster.clock.now()
    revisions = evaluate(snapshot, now).fleet.revisions
    if snapshot.revisions is None:
        raise missing_permissions(list(snapshot.missing))
    for line in permission_lines(snapshot.missing):
        click.echo(line, err=True)
    style = Style(sys.stdout)
    if revision is not None:
        click.echo(template_text(_revision_by_number(revisions, revision, ds.short_name)), nl=False)
    elif diff:
        before, after = (_revision_by_number(revisions, number, ds.short_name) for number in diff)
        lines = diff_lines(before, after, style)
        click.echo("\n".join(lines) or "No difference.")
    elif output in ("json", "yaml"):
        print_document({"items": [revision_document(each) for each in revisions]}, output)
    elif not revisions:
        click.echo("No revisions yet: has a controller seen this DaemonSet?", err=True)
    else:
        click.echo("\n".join(revision_table(revisions, style, now, wide=output == "wide")))


def _revision_by_number(
    revisions: tuple[RevisionInfo, ...], number: int, name: str
) -> RevisionInfo:
    from everynode.errors import UserError

    for each in revisions:
        if each.number == number:
            return each
    known = ", ".join(str(each.number) for each in revisions) or "none"
    raise UserError(f"{name} has no revision {number}; there are: {known}")
