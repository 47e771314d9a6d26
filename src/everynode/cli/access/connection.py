"""Connection to a cluster: a checked client, errors as UserError."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import click
import msgspec

from everynode.clock import Clock
from everynode.errors import UserError, one_line
from everynode.kube import errors
from everynode.kube.auth.credentials import ConfigError
from everynode.kube.auth.kubeconfig import ClusterConfig, load_cluster_config
from everynode.kube.client import UNREADABLE, Client
from everynode.kube.errors import KubeError
from everynode.kube.http.transport import HttpTransport
from everynode.kube.permissions import missing_permission, missing_permissions
from everynode.kube.requests import Request

OLDEST_SUPPORTED: Final = (1, 30)  # the oldest Kubernetes that is tested

_DIGITS: Final = re.compile(r"\d+")


def find_access(clock: Clock, *, kubeconfig: str = "", context: str = "") -> ClusterConfig:
    """Return server and credentials from a kubeconfig or from the pod; raises UserError."""
    try:
        return load_cluster_config(clock, kubeconfig=kubeconfig, context=context)
    except ConfigError as error:
        raise UserError(str(error)) from error


@asynccontextmanager
async def connect(
    clock: Clock, *, kubeconfig: str = "", context: str = ""
) -> AsyncIterator[Client]:
    """Yield a client of a server that has answered and has accepted the credentials.

    Raises UserError if it has not. Errors of later requests become UserErrors too.
    """
    access = find_access(clock, kubeconfig=kubeconfig, context=context)
    client = Client(HttpTransport(access, clock), clock)
    try:
        await check_server(client)
        yield client
    except KubeError as error:
        raise as_user_error(error) from error
    finally:
        await client.close()


async def check_server(client: Client) -> None:
    """Warn if the server is too old; raises UserError or KubeError if there is no API server."""
    version = await server_version(client)
    if version < OLDEST_SUPPORTED:
        click.echo(
            f"warning: this is Kubernetes {version[0]}.{version[1]}; "
            f"{OLDEST_SUPPORTED[0]}.{OLDEST_SUPPORTED[1]} is the oldest that Everynode is made for",
            err=True,
        )


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


_decode_version: Final = msgspec.json.Decoder(_Version).decode


async def server_version(client: Client) -> tuple[int, int]:
    """Return major and minor version; raises UserError or KubeError if there is no API server."""
    try:
        answer = await client.read(Request("GET", "/version"), _decode_version)
    except (errors.Unavailable, errors.NotServed) as error:
        if isinstance(error, errors.Unavailable) and not isinstance(error.__cause__, UNREADABLE):
            raise
        raise UserError(
            "the server that was reached is not a Kubernetes API server; "
            "check the server of the kubeconfig, and whether a proxy answers in its place"
        ) from None
    # Some providers write a minor version of "30+".
    major, minor = (_DIGITS.match(text) for text in (answer.major, answer.minor))
    return (int(major[0]), int(minor[0])) if major and minor else OLDEST_SUPPORTED


def as_user_error(error: KubeError) -> UserError:
    """Convert a refusal of the server into one line with advice."""
    message = one_line(error.message)
    match error:
        case errors.Forbidden():
            return missing_permissions([missing_permission(error)])
        case errors.Unauthorized():
            return UserError(
                "the server does not accept these credentials: they are wrong or have expired; "
                "log in again, or choose another --context"
            )
        case errors.Unavailable():
            return _unavailable(error, message)
        case errors.UnknownOutcome():
            return UserError(
                f"no answer to {error.request_info}: {message}; "
                "it may have happened, so look and try again"
            )
        case errors.NotServed():
            return UserError(f"the server does not serve {error.request_info.resource}: {message}")
    return UserError(
        f"cannot {error.request_info}: {message}" if error.request_info.verb else message
    )


def _unavailable(error: KubeError, message: str) -> UserError:
    """An unreachable server; an error of the credentials stays as it is, and keeps its advice."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConfigError):
            return UserError(message)
        cause = cause.__cause__
    advice = "check that it runs and that --kubeconfig and --context name the right cluster"
    return UserError(
        f"cannot reach the API server: {message}" + ("" if ";" in message else f"; {advice}")
    )
