"""Cluster: the connection and the namespace that a command works with, from its options."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import click

from everynode.cli.access.completion import complete_namespace
from everynode.cli.access.connection import (
    as_user_error,
    check_namespace,
    check_server,
    connection_options,
    find_access,
)
from everynode.clock import Clock, SystemClock
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.http.transport import HttpTransport


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


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connection to a cluster, and the namespace in which names are looked up."""

    client: Client
    clock: Clock
    namespace: str
    options: ClusterOptions = ClusterOptions()


def cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command -n, --kubeconfig and --context; it gets them as `access`: ClusterOptions."""

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
        help="Namespace of the DaemonSet; that of the context by default.",
    )(packed)
    return connection_options(wrapped)


@asynccontextmanager
async def open_cluster(options: ClusterOptions) -> AsyncIterator[Cluster]:
    """Connect as the options say; what the server refuses becomes a UserError of one line."""
    clock = SystemClock()
    access = find_access(clock, kubeconfig=options.kubeconfig, context=options.context)
    client = Client(HttpTransport(access, clock), clock)
    try:
        await check_server(client)
        yield Cluster(client, clock, options.namespace or access.namespace, options)
    except KubeError as error:
        raise as_user_error(error) from error
    finally:
        await client.close()
