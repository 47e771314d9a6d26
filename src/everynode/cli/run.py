"""`everynode run`: the controller, for the cluster of a kubeconfig or of its own pod."""

from __future__ import annotations

from typing import Any

import click

from everynode import log
from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.cli.access.options import check_namespace, connection_options


@click.command("run")
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    callback=check_namespace,
    help="Serve only this namespace; all by default.",
)
@click.option(
    "--native",
    is_flag=True,
    help="Serve apps/v1 DaemonSets, too. Only where kube-controller-manager runs with "
    "--controllers=*,-daemonset-controller.",
)
@click.option("--no-advanced", is_flag=True, help="Leave apps.kruise.io DaemonSets alone.")
@click.option(
    "--pull-ahead",
    is_flag=True,
    help="Fetch new images ahead on every node, not only for DaemonSets annotated with "
    "apps.kruise.io/image-predownload-parallelism.",
)
@click.option(
    "--schedule-daemonset-pods/--no-schedule-daemonset-pods",
    default=True,
    show_default=True,
    help="Leave it to the scheduler to bind new pods. Otherwise they are created with nodeName, "
    "without regard to what fits on the node.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Let only one of several processes write.",
)
@click.option(
    "--lease-namespace",
    default="",
    metavar="NAME",
    callback=check_namespace,
    help=f"Where the leader's Lease is; the pod's own namespace, else {CONTROLLER_NAMESPACE}.",
)
@click.option(
    "--health-address",
    metavar="HOST:PORT",
    default="127.0.0.1:8081",
    show_default=True,
    help="Where /livez and /readyz answer; 0 for nowhere.",
)
@click.option(
    "--metrics-address",
    metavar="HOST:PORT",
    default="127.0.0.1:8080",
    show_default=True,
    help="Where /metrics answers; 0 for nowhere.",
)
@click.option(
    "--dashboard-address",
    metavar="HOST:PORT",
    default="0",
    show_default=True,
    help="Where the page of all rollouts answers, on loopback only; 0 for nowhere. Users sign in "
    "with a token of the cluster and see what they may read.",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "human", "json"]),
    default="auto",
    show_default=True,
    help="auto: human on a terminal, JSON elsewhere.",
)
@click.option(
    "--log-level",
    type=click.Choice(log.LEVELS),
    default="info",
    show_default=True,
    help="How much is logged.",
)
@connection_options
def command(**options: Any) -> None:
    """Run the controller until Ctrl-C or SIGTERM.

    It needs the CRD and the permissions that `everynode install` brings, and ends with a message
    if they are missing. Stopping it leaves all pods alone; another process continues from there.

    \b
    On the cluster of your kubeconfig:  everynode run
    To see every decision:              everynode run --namespace agents --log-level debug
    Native DaemonSets, too:             everynode run --native
    Health and metrics:                 curl 127.0.0.1:8081/readyz 127.0.0.1:8080/metrics
    """
    if options["no_advanced"] and not options["native"]:
        raise click.UsageError("--no-advanced without --native leaves nothing to do")
    # Late, as all that --help does not need.
    from everynode.cli.serving.run import RunOptions, run_controller

    run_controller(RunOptions(**options))
