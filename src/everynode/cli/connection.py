"""Reaching a cluster from the command line: its options, a client, and errors in plain words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import click
import msgspec

from everynode.cli.errors import UserError
from everynode.clock import Clock
from everynode.kube import errors
from everynode.kube.client import Client
from everynode.kube.config import load
from everynode.kube.credentials import ConfigError
from everynode.kube.errors import KubeError
from everynode.kube.http import HttpTransport
from everynode.kube.requests import Request

OLDEST: Final = (1, 30)  # the oldest Kubernetes we know to work

Function = TypeVar("Function", bound=Callable[..., Any])

_DIGITS: Final = re.compile(r"\d+")
# RBAC's own words for what is missing; a request to apply may lack either patch or create.
_CANNOT: Final = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def connection_options(function: Function) -> Function:
    """Give a command --kubeconfig and --context."""
    function = click.option(
        "--context", default="", help="Context of the kubeconfig; the current one by default."
    )(function)
    return click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="How to reach the cluster; by default $KUBECONFIG, then ~/.kube/config, then the "
        "service account of the pod this runs in.",
    )(function)


def open_client(clock: Clock, *, kubeconfig: str = "", context: str = "") -> Client:
    """Return a client of the cluster that was chosen, before anything is asked of it.

    Raises UserError when the kubeconfig leads nowhere.
    """
    try:
        access = load(clock, kubeconfig=kubeconfig, context=context)
    except ConfigError as error:
        raise UserError(str(error)) from error
    return Client(HttpTransport(access, clock), clock)


@asynccontextmanager
async def connect(
    clock: Clock, *, kubeconfig: str = "", context: str = ""
) -> AsyncIterator[Client]:
    """Give out a client whose server has answered and knows us.

    Raises UserError when it does not; whatever the server refuses later becomes one too.
    """
    client = open_client(clock, kubeconfig=kubeconfig, context=context)
    try:
        version = await _version(client)
        if version < OLDEST:
            click.echo(
                f"warning: this is Kubernetes {version[0]}.{version[1]}; "
                f"{OLDEST[0]}.{OLDEST[1]} is the oldest that Everynode is made for",
                err=True,
            )
        yield client
    except KubeError as error:
        raise explain(error) from error
    finally:
        await client.close()


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


_decode_version: Final = msgspec.json.Decoder(_Version).decode


async def _version(client: Client) -> tuple[int, int]:
    try:
        answer = await client.read(Request("GET", "/version"), _decode_version)
    except msgspec.DecodeError:
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
            return UserError(
                f"cannot reach the API server: {said}; "
                "check that it runs and that --kubeconfig and --context name the right cluster"
            )
        case errors.UnknownOutcome():
            return UserError(
                f"no answer to {error.asked}: {said}; it may have happened, so look and try again"
            )
        case errors.NotServed():
            return UserError(f"the server does not serve {error.asked.resource}: {said}")
    return UserError(f"cannot {error.asked}: {said}" if error.asked.verb else said)


def missing_permission(error: errors.Forbidden) -> str:
    """Name the verb and the resource, as a role would, that a refusal was about."""
    found = _CANNOT.search(error.message)
    if found is None:
        return str(error.asked)
    resource = found["resource"]
    if found["group"]:
        plural, slash, subresource = resource.partition("/")
        resource = f"{plural}.{found['group']}{slash}{subresource}"
    # A namespace is said to be in itself.
    within = found["namespace"] if resource != "namespaces" else ""
    where = f" in namespace {within}" if within else ""
    return f"{found['verb']} {resource}{where}"


def missing_permissions(missing: list[str]) -> UserError:
    """Say which permissions somebody has to grant."""
    return UserError(
        f"you lack the permission to {', '.join(missing)}; "
        "ask a cluster administrator for it, or choose another --context"
    )


def one_line(text: str) -> str:
    """Put a server's message, which may have many lines, on one."""
    return " ".join(text.split())
