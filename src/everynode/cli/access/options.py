"""Options of commands that reach a cluster. Nothing else is imported, so that --help is quick."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from everynode.cli.access.completion import complete_context, complete_namespace

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options --kubeconfig, --context and --namespace as they were given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""

    def kubectl_arguments(self, namespace: str) -> list[str]:
        """Return the arguments with which kubectl reaches the same namespace."""
        given = [("--kubeconfig", self.kubeconfig), ("--context", self.context)]
        options = [*given, ("--namespace", namespace)]
        return [argument for option, value in options if value for argument in (option, value)]


def connection_options(function: Function) -> Function:
    """Give a command --kubeconfig and --context."""
    function = click.option(
        "--context",
        default="",
        metavar="NAME",
        shell_complete=complete_context,
        help="Context of the kubeconfig; the current one by default.",
    )(function)
    return click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="How to reach the cluster; by default $KUBECONFIG, then ~/.kube/config, then the "
        "service account of the pod this runs in.",
    )(function)


def check_namespace(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the value of an option that names a namespace; may be empty."""
    from everynode.api.validation.names import dns_label

    if value and any(dns_label(value)):
        raise click.BadParameter(
            f"{value!r} is not the name of a namespace: at most 63 lower case letters, digits and "
            "'-', with a letter or digit at both ends"
        )
    return value


def cluster_options(
    function: Callable[..., Any],
    *,
    namespace: str = "Namespace of the DaemonSet; that of the context by default.",
) -> Callable[..., Any]:
    """Give a command -n, --kubeconfig and --context; it gets them as `access`: ClusterOptions.

    `namespace` is the help of -n.
    """

    @functools.wraps(function)
    def packed(*args: Any, kubeconfig: str, context: str, namespace: str, **rest: Any) -> Any:
        options = ClusterOptions(kubeconfig, context, namespace)
        return function(*args, access=options, **rest)

    wrapped = click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        callback=check_namespace,
        shell_complete=complete_namespace,
        help=namespace,
    )(packed)
    return connection_options(wrapped)
