"""`everynode up`: a cluster of simulated nodes on this machine, for kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from everynode import log
from everynode.cli.serving.options import speed_option
from everynode.components.kubelet.registration import MAX_NODES

DEFAULT_KUBECONFIG: Final = "everynode.kubeconfig"
MAX_ZONES: Final = 26


def _folder(ctx: click.Context, param: click.Parameter, value: str | None) -> Path | None:
    if value == "":  # an unset variable of a script; Path("") would be the current folder
        raise click.BadParameter("the name of the folder is empty")
    return None if value is None else Path(value)


@click.command("up")
@click.option(
    "--nodes",
    type=click.IntRange(0, MAX_NODES),
    metavar="N",
    default=3,
    show_default=True,
    help="How many nodes the cluster has at the start.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    default=0,
    help="Where the API server listens on 127.0.0.1; any free port by default.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_KUBECONFIG,
    show_default=True,
    help="The kubeconfig file to write; other contexts in the file stay.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    callback=_folder,
    default=None,
    help="Keep the cluster's objects in this folder for the next start; default: in memory only.",
)
@speed_option(1.0)
@click.option(
    "--zones",
    type=click.IntRange(1, MAX_ZONES),
    metavar="N",
    default=3,
    show_default=True,
    help="How many zones the nodes are spread over.",
)
@click.option(
    "--kubernetes",
    is_flag=True,
    help="Use the real kube-apiserver, etcd, kube-scheduler and kube-controller-manager "
    "(make kubernetes) with the simulated nodes.",
)
@click.option(
    "--no-controller",
    "controller",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Only the cluster: DaemonSets are not served until you start `everynode run` or another "
    "controller.",
)
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    metavar="P",
    default=0,
    help="Where the page of all rollouts listens on 127.0.0.1; any free port by default.",
)
@click.option(
    "--no-dashboard",
    "dashboard",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Without the page of all rollouts.",
)
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Let that page pause, resume, partition and undo, with a token that is printed.",
)
@click.option(
    "--log-level",
    type=click.Choice(log.LEVELS),
    default="warning",
    show_default=True,
    help="How much is logged.",
)
def command(*, log_level: str, **options: Any) -> None:
    """Start a cluster of simulated nodes for kubectl, with Everynode's controller in it.

    It needs neither containers nor privileges, and ends with Ctrl-C. While it runs, stop or slow
    down nodes with `everynode node`, and break images with `everynode image`.

    \b
    A cluster to play with:     everynode up --nodes 20
    One that you can keep:      everynode up --data ~/everynode
    A minute in three seconds:  everynode up --speed 20
    """
    # Late, as all that --help does not need.
    from everynode.cli.serving.up import UpOptions, run_cluster

    run_cluster(UpOptions(**options), log_level)
