"""`everynode doctor`: what in a cluster gets in the way, and what to do about it."""

from __future__ import annotations

import asyncio
import sys

import click

from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.cli.access.options import ClusterOptions, check_namespace, connection_options
from everynode.cli.terminal.output import output_option


@click.command("doctor")
@click.option("--native", is_flag=True, help="Check what native DaemonSets need, too.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default=CONTROLLER_NAMESPACE,
    show_default=True,
    callback=check_namespace,
    help="The namespace of the controller.",
)
@output_option("json", "yaml")
@connection_options
def command(*, native: bool, namespace: str, output: str, kubeconfig: str, context: str) -> None:
    """Find what in a cluster gets in Everynode's way; changes nothing.

    Each line is one finding with its remedy. Errors must be fixed, and then the exit code is 1;
    warnings should be known. What you may not look at is named on stderr.

    \b
    Before an installation:   everynode doctor
    With native DaemonSets:   everynode doctor --native
    For a program:            everynode doctor -o json
    """
    access = ClusterOptions(kubeconfig, context, namespace)
    if asyncio.run(_examine(access, output, native=native)):
        sys.exit(1)


async def _examine(access: ClusterOptions, output: str, *, native: bool) -> int:
    """Print what was found; return the number of errors."""
    # Late, as all that --help does not need.
    import msgspec

    from everynode.api.validation.lint import Severity
    from everynode.cli.access.cluster import open_cluster
    from everynode.cli.checkup.findings import find
    from everynode.cli.checkup.reader import FactReader
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.text import format_count
    from everynode.errors import one_line, replace_control_characters

    async with open_cluster(access, any_version=True) as cluster:
        reader = FactReader(cluster.client, namespace=access.namespace, native=native)
        facts = await reader.read()
    found = find(facts)
    errors = sum(each.severity is Severity.ERROR for each in found)
    if output:
        document = {"items": msgspec.to_builtins(found), "notChecked": list(facts.not_checked)}
        print_document(document, output)
    else:
        for each in found:
            click.echo(replace_control_characters(one_line(str(each))))
        for why in facts.not_checked:
            click.echo(f"not checked: {replace_control_characters(why)}", err=True)
        counts = f"{format_count(errors, 'error')}, {format_count(len(found) - errors, 'warning')}"
        click.echo(counts if found else "nothing is in the way", err=bool(found))
    return errors
