"""Cluster: the connection and the namespace that a command works with, from its options."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import click

from everynode.cli.access.connection import (
    as_user_error,
    check_server,
    find_access,
)
from everynode.cli.access.options import ClusterOptions
from everynode.clock import Clock, SystemClock
from everynode.errors import one_line, replace_control_characters
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.http.transport import HttpTransport
from everynode.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connection to a cluster, and the namespace in which names are looked up."""

    client: Client
    clock: Clock
    namespace: str
    options: ClusterOptions = field(default_factory=ClusterOptions)
    home: str = "default"  # the namespace of the context

    def where(self, namespace: str) -> str:
        """Return the options with which another command reaches the same cluster and namespace."""
        given = (
            ("-n", "" if namespace == self.home else namespace),
            ("--context", self.options.context),
            ("--kubeconfig", self.options.kubeconfig),
        )
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value)


@asynccontextmanager
async def open_cluster(
    options: ClusterOptions, *, any_version: bool = False
) -> AsyncIterator[Cluster]:
    """Connect as the options say; what the server refuses becomes a UserError of one line.

    A server that is too old is warned of, unless `any_version` says that the caller does it.
    """
    clock = SystemClock()
    access = find_access(clock, kubeconfig=options.kubeconfig, context=options.context)
    client = Client(HttpTransport(access, clock), clock, left_out=_warn_of_left_out)
    try:
        if not any_version:
            await check_server(client)
        namespace = options.namespace or access.namespace
        yield Cluster(client, clock, namespace, options, access.namespace)
    except KubeError as error:
        raise as_user_error(error) from error
    finally:
        await client.close()


def _warn_of_left_out(resource: Resource, message: str) -> None:
    line = replace_control_characters(one_line(message))
    click.echo(f"warning: an object cannot be read and is left out: {line}", err=True)
