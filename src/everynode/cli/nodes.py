"""`everynode nodes`: the nodes of one rollout, one line each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.options import ClusterOptions, cluster_options
from everynode.cli.terminal.output import output_option

if TYPE_CHECKING:
    from everynode.inspect.fleet import NodeRow


@click.command("nodes")
@click.argument("name", shell_complete=complete_daemonset)
@click.option("--old", is_flag=True, help="Only nodes whose pod is not at the target revision.")
@click.option("--waiting", is_flag=True, help="Only nodes that wait for something to change.")
@click.option("--held", is_flag=True, help="Only nodes that partition, selector or a pause hold.")
@click.option("--reason", default="", metavar="R", help="Only with this reason: ImagePullBackOff.")
@click.option(
    "-l", "--selector", default="", metavar="QUERY", help="Only nodes with these labels: gpu=true."
)
@output_option("json", "yaml", "name", "wide")
@cluster_options
def command(
    *,
    name: str,
    old: bool,
    waiting: bool,
    held: bool,
    reason: str,
    selector: str,
    output: str,
    access: ClusterOptions,
) -> None:
    """List the nodes of DaemonSet NAME: how each stands, revision, pod, since when, reason.

    Several filters must all match. Nodes that should have no pod are listed with -o wide, -o json
    and -o yaml, or when a filter asks for them.

    \b
    What is still old:       everynode nodes agent --old
    What waits, with texts:  everynode nodes agent --waiting -o wide
    Names for a script:      everynode nodes agent --reason CrashLoopBackOff -o name
    """
    import asyncio  # late, as all that --help does not need

    asyncio.run(_list(access, name, _Filter(old, waiting, held, reason, selector), output))


class _Filter:
    """Which nodes are listed."""

    def __init__(self, old: bool, waiting: bool, held: bool, reason: str, selector: str) -> None:
        self._old, self._waiting, self._held = old, waiting, held
        self._reason = reason.lower()
        self._selector = selector
        self.asks = bool(old or waiting or held or reason or selector)

    def check(self) -> None:
        """Raise UsageError if the selector is invalid."""
        from everynode.api.selector import SelectorError, parse_query
        from everynode.errors import UsageError

        try:
            self._matcher = parse_query(self._selector)
        except SelectorError as error:
            raise UsageError(f"--selector {self._selector}: {error}") from None

    def wants(self, row: NodeRow, target: str) -> bool:
        """Whether a node is listed."""
        if self._old and (not row.pod or row.revision == target):
            return False
        if self._waiting and row.standing != "waiting":
            return False
        if self._held and row.standing != "held":
            return False
        if self._reason and row.reason.lower() != self._reason:
            return False
        return not self._selector or self._matcher.matches(row.labels)


async def _list(access: ClusterOptions, name: str, wanted: _Filter, output: str) -> None:
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.access.daemonset_names import find_daemonset
    from everynode.cli.rollout.documents import node_document
    from everynode.cli.rollout.lines import node_table, permission_lines
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.style import Style
    from everynode.inspect.rooms import evaluate_with_rooms
    from everynode.inspect.snapshot import SnapshotReader
    from everynode.kube.permissions import missing_permissions

    wanted.check()
    async with open_cluster(access) as cluster:
        found = await find_daemonset(cluster, name)
        snapshot = await SnapshotReader(cluster.client).read(found.ds)
        if snapshot.nodes is None and snapshot.pods is None:
            raise missing_permissions(list(snapshot.missing))  # no node is known
        now = cluster.clock.now()
        fleet = (await evaluate_with_rooms(cluster.client, snapshot, now)).fleet
    everything = wanted.asks or output in ("json", "yaml", "wide")
    rows = [
        row
        for row in fleet.rows
        if wanted.wants(row, fleet.target) and (everything or row.standing != "not-eligible")
    ]
    for line in permission_lines(fleet.missing):
        click.echo(line, err=True)
    if output in ("json", "yaml"):
        print_document({"items": [node_document(fleet, row) for row in rows]}, output)
    elif output == "name":
        for row in rows:
            click.echo(f"node/{row.node}")
    elif not rows:
        click.echo("No such nodes.", err=True)
    else:
        style = Style(sys.stdout)
        click.echo("\n".join(node_table(fleet, rows, style, now, wide=output == "wide")))
