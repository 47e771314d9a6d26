"""`everynode install`: install CRD, RBAC and optionally the controller on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.cli.access.options import check_namespace, connection_options

if TYPE_CHECKING:
    from everynode.clock import Clock
    from everynode.install.apply import Consent
    from everynode.kube.client import Client

Object = dict[str, Any]


def _image(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is None:
        return ""
    if not value:
        # Mostly a variable that is not set: the controller that was asked for would be missing.
        raise click.BadParameter("an image has a name; leave --image out to install no controller")
    if value.split() != [value]:
        raise click.BadParameter("an image has no spaces in its name")
    return value


@click.command("install")
@click.option("--print", "only_print", is_flag=True, help="Print YAML and touch no cluster.")
@click.option(
    "--image",
    metavar="IMAGE",
    callback=_image,
    help="Also run the controller in the cluster, from this image (see Containerfile).",
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default=CONTROLLER_NAMESPACE,
    show_default=True,
    callback=check_namespace,
    help="The namespace of the controller.",
)
@click.option("--native", is_flag=True, help="Serve native (apps/v1) DaemonSets, too.")
@click.option(
    "--dashboard",
    is_flag=True,
    help="Let the controller serve the page of all rollouts, to users by their own rights.",
)
@click.option(
    "--adopt-crd", is_flag=True, help="Replace the CRD of OpenKruise; its DaemonSets stay."
)
@click.option("--force", is_flag=True, help="Take over fields that others have changed since.")
@connection_options
def command(
    *,
    only_print: bool,
    image: str,
    namespace: str,
    native: bool,
    dashboard: bool,
    adopt_crd: bool,
    force: bool,
    kubeconfig: str,
    context: str,
) -> None:
    """Install the DaemonSet CRD and the controller's permissions on a cluster.

    With --image the controller itself is installed, too: two replicas, one of which works while
    the other stands by. Without it, start it yourself with `everynode run`.

    Nothing is changed unless all of it can be; installing again changes nothing.

    \b
    Look first:           everynode install --print | less
    Only CRD and RBAC:    everynode install
    All in the cluster:   everynode install --image registry.example/everynode:0.1.0
    """
    import asyncio  # late, as all that --help does not need

    from everynode.install import InstallOptions, install_objects
    from everynode.install.apply import Consent
    from everynode.install.yaml_output import as_yaml

    options = InstallOptions(namespace=namespace, image=image, native=native, dashboard=dashboard)
    wanted = install_objects(options)
    if only_print:
        click.echo(as_yaml(wanted), nl=False)
        return
    consent = Consent(adopt_crd=adopt_crd, force=force)
    asyncio.run(_install(wanted, consent, kubeconfig=kubeconfig, context=context))
    click.echo(_what_next(namespace, image=image, native=native))


async def _install(
    wanted: list[Object], consent: Consent, *, kubeconfig: str, context: str
) -> None:
    from everynode.cli.access.connection import connect
    from everynode.clock import SystemClock

    clock = SystemClock()
    async with connect(clock, kubeconfig=kubeconfig, context=context) as client:
        await install(client, clock, wanted, consent)


async def install(client: Client, clock: Clock, wanted: list[Object], consent: Consent) -> None:
    """Apply all objects and print the outcome of each; raises UserError."""
    from everynode.install.apply import apply_all
    from everynode.install.takeover import helm_release

    async for step, outcome in apply_all(client, clock, wanted, consent):
        click.echo(f"{step} {outcome}")
        release = helm_release(step.live) if step.taken_over and step.live is not None else ""
        if release:
            click.echo(_helm_warning(release), err=True)


def _helm_warning(release: str) -> str:
    return (
        f"warning: the CRD came with the Helm release {release}: uninstalling that would delete "
        "the CRD and with it all Advanced DaemonSets, upgrading it would bring the webhook back"
    )


def _what_next(namespace: str, *, image: str, native: bool) -> str:
    if image:
        return f"Watch it start: kubectl -n {namespace} rollout status deployment/everynode"
    return f"Now start the controller: everynode run{' --native' if native else ''}"
