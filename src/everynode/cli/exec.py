"""`everynode exec`: a command in the pod that a DaemonSet has on a node, by kubectl."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset, complete_node
from everynode.cli.access.options import ClusterOptions, cluster_options


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("name", shell_complete=complete_daemonset)
@click.option("--node", required=True, metavar="NODE", shell_complete=complete_node, help="Where.")
@click.option("-i", "--stdin", is_flag=True, help="Pass the standard input on.")
@click.option("-t", "--tty", is_flag=True, help="Give it a terminal.")
@click.option("-c", "--container", default="", metavar="C", help="In which container.")
@click.argument("words", metavar="COMMAND [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
@cluster_options
def command(
    *,
    name: str,
    node: str,
    stdin: bool,
    tty: bool,
    container: str,
    words: tuple[str, ...],
    access: ClusterOptions,
) -> None:
    """Run a command in the pod that DaemonSet NAME has on a node.

    It finds the pod and runs `kubectl exec` on it; kubectl must be on PATH. Options of the command
    itself come after `--`.

    \b
    One command:  everynode exec agent --node node-0006 -- cat /etc/hosts
    A shell:      everynode exec agent --node node-0006 -it -- sh
    """
    if not words:
        raise click.UsageError("say what to run: everynode exec NAME --node NODE -- COMMAND")
    from everynode.cli.access.kubectl import run_on_pod

    options = [*(["-i"] if stdin else []), *(["-t"] if tty else [])]
    options += ["-c", container] if container else []
    run_on_pod(access, name, node, ["exec", "{pod}", *options, "--", *words])
