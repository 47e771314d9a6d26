"""`everynode logs`: the logs of the pod that a DaemonSet has on a node, by kubectl."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset, complete_node
from everynode.cli.access.options import ClusterOptions, cluster_options


@click.command("logs", context_settings={"ignore_unknown_options": True})
@click.argument("name", shell_complete=complete_daemonset)
@click.option("--node", required=True, metavar="NODE", shell_complete=complete_node, help="Where.")
@click.argument("rest", metavar="[KUBECTL OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@cluster_options
def command(*, name: str, node: str, rest: tuple[str, ...], access: ClusterOptions) -> None:
    """Print the logs of the pod that DaemonSet NAME has on a node.

    It finds the pod and runs `kubectl logs` on it, with all further options; kubectl must be on
    PATH.

    \b
    The last lines, and more:  everynode logs agent --node node-0006 --tail=20 -f
    Before the last crash:     everynode logs agent --node node-0006 --previous
    """
    from everynode.cli.access.kubectl import run_on_pod

    run_on_pod(access, name, node, ["logs", "{pod}", *rest])
