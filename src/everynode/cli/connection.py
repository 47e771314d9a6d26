"""Reaching a cluster from the command line: its options, a client, and errors in plain words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import click
import msgspec

from everynode.api.validation.names import dns_label
from everynode.cli.errors import UserError
from everynode.cli.permissions import missing_permission, missing_permissions
from everynode.clock import Clock
from everynode.kube import errors
from everynode.kube.client import UNREADABLE, Client
from everynode.kube.config import Access, load
from everynode.kube.credentials import ConfigError
from everynode.kube.errors import KubeError
from everynode.kube.http import HttpTransport
from everynode.kube.requests import Request

OLDEST: Final = (1, 30)  # the oldest Kubernetes we know to work

Function = TypeVar("Function", bound=Callable[..., Any])

_DIGITS: Final = re.compile(r"\d+")


def connection_options(function: Function) -> Function:
    """Give a command --kubeconfig and --context."""
    function = click.option(
        "--context",
        default="",
        metavar="NAME",
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
    """Refuse what no namespace can be called; for options that name one, or none."""
    if value and any(dns_label(value)):
        raise click.BadParameter(
            f"{value!r} is not the name of a namespace: at most 63 lower case letters, digits and "
            "'-', with a letter or digit at both ends"
        )
    return value


def find_access(clock: Clock, *, kubeconfig: str = "", context: str = "") -> Access:
    """Return the way to the cluster that was chosen; raises UserError where it leads nowhere."""
    try:
        return load(clock, kubeconfig=kubeconfig, context=context)
    except ConfigError as error:
        raise UserError(str(error)) from error


@asynccontextmanager
async def connect(
    clock: Clock, *, kubeconfig: str = "", context: str = ""
) -> AsyncIterator[Client]:
    """Give out a client whose server has answered and knows us.

    Raises UserError when it does not; whatever the server refuses later becomes one too.
    """
    access = find_access(clock, kubeconfig=kubeconfig, context=context)
    client = Client(HttpTransport(access, clock), clock)
    try:
        await check_server(client)
        yield client
    except KubeError as error:
        raise explain(error) from error
    finally:
        await client.close()


async def check_server(client: Client) -> None:
    """Warn of a server that is too old; raises UserError or KubeError where there is none."""
    version = await _version(client)
    if version < OLDEST:
        click.echo(
            f"warning: this is Kubernetes {version[0]}.{version[1]}; "
            f"{OLDEST[0]}.{OLDEST[1]} is the oldest that Everynode is made for",
            err=True,
        )


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


_decode_version: Final = msgspec.json.Decoder(_Version).decode


async def _version(client: Client) -> tuple[int, int]:
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
    return (int(major[0]), int(minor[0])) if major and minor else OLDEST


def explain(error: KubeError) -> UserError:
    """Say in one line what the server refused, and what to do about it."""
    said = one_line(error.message)
    match error:
        case errors.Forbidden():
            return missing_permissions([missing_permission(error)])
        case errors.Unauthorized():
            return UserError(
                "the server does not accept these credentials: they are wrong or have expired; "
                "log in again, or choose another --context"
            )
        case errors.Unavailable():
            return _unavailable(error, said)
        case errors.UnknownOutcome():
            return UserError(
                f"no answer to {error.asked}: {said}; it may have happened, so look and try again"
            )
        case errors.NotServed():
            return UserError(f"the server does not serve {error.asked.resource}: {said}")
    return UserError(f"cannot {error.asked}: {said}" if error.asked.verb else said)


def _unavailable(error: KubeError, said: str) -> UserError:
    """Blame the server only where it was asked, and advise only where nobody has yet."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConfigError):
            return UserError(said)
        cause = cause.__cause__
    advice = "check that it runs and that --kubeconfig and --context name the right cluster"
    return UserError(
        f"cannot reach the API server: {said}" + ("" if ";" in said else f"; {advice}")
    )


def one_line(text: str) -> str:
    """Put a server's message, which may have many lines, on one."""
    return " ".join(text.split())
