"""`everynode convert`: convert DaemonSet manifests to another API version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from everynode.api import keys

if TYPE_CHECKING:
    from everynode.api.conversion import LostField

Object = dict[str, Any]


@click.command("convert")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A manifest, or - for standard input; may be given several times.",
)
@click.option(
    "--to",
    "version",
    type=click.Choice([keys.V1BETA1, keys.V1ALPHA1, keys.APPS_V1]),
    default=keys.V1BETA1,
    show_default=True,
    help="The API version to convert to.",
)
@click.option("--drop", is_flag=True, help="Leave out what that version has no field for.")
def command(*, files: Sequence[str], version: str, drop: bool) -> None:
    """Print manifests with their DaemonSets in another API version.

    Other objects are printed as they are. Fields that a server writes are left out, so that live
    objects can be piped in. A field without a counterpart is refused, or dropped with a message.

    \b
    From native to Advanced, without restarting a pod:
      kubectl get ds agent -o yaml | everynode convert -f - > agent.yaml
      kubectl delete ds agent --cascade=orphan
      kubectl apply -f agent.yaml
    And back again:
      everynode convert -f agent.yaml --to apps/v1 --drop
    """
    # Late, as all that --help does not need.
    from everynode.cli.terminal.manifest_files import is_daemonset, read_objects
    from everynode.install.yaml_output import as_yaml

    found = [(name, each) for name in files for each in read_objects(name)]
    converted = [
        _convert(name, each, version, drop=drop) if is_daemonset(each) else each
        for name, each in found
    ]
    click.echo(as_yaml(converted), nl=False)


def _convert(name: str, manifest: Object, version: str, *, drop: bool) -> Object:
    from everynode.api.conversion import convert
    from everynode.errors import UserError

    converted, lost = convert(manifest, version)
    who = manifest["metadata"]["name"]
    if lost and not drop:
        raise UserError(
            f"{name}: {version} has no field for parts of DaemonSet {who}; --drop leaves out "
            + ", ".join(f"{each.path} ({each.instead})" for each in lost)
        )
    for each in lost:
        click.echo(_drop_notice(who, each), err=True)
    return converted


def _drop_notice(who: str, loss: LostField) -> str:
    return f"dropped {loss.path} of {who}: {loss.instead}"
