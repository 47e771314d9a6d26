"""Prerequisites of the controller: server version, permissions, CRD, namespace of the Lease.

`everynode run` checks them at a terminal, so that the user sees at once what is missing. In a pod
they are not checked: there the controller starts, retries, and /readyz says what is missing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import click
import msgspec

from everynode.cli.access.connection import as_user_error, check_server
from everynode.controller.run import ControllerOptions
from everynode.errors import UserError
from everynode.install.rbac import DASHBOARD_RULES, OWN_NAMESPACE_RULES, PolicyRule, rules
from everynode.kube import verbs
from everynode.kube.client import Client, decode_page
from everynode.kube.errors import Forbidden, KubeError, NotFound, NotServed
from everynode.kube.permissions import Permission, is_allowed, missing_permissions
from everynode.kube.resources import ADVANCED, NAMESPACES


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisites:
    """What the controller is started with."""

    controller: ControllerOptions
    lease_namespace: str  # empty without leader election
    dashboard: bool = False


async def check_prerequisites(client: Client, prerequisites: Prerequisites) -> None:
    """Raise UserError if the controller could not work on this cluster."""
    try:
        await check_server(client)
        await _check_permissions(client, prerequisites)
        if prerequisites.controller.advanced:
            await _check_crd(client)
        if prerequisites.lease_namespace and not await _exists(
            client, prerequisites.lease_namespace
        ):
            raise UserError(
                f"namespace {prerequisites.lease_namespace} for the leader's Lease does not exist: "
                "run `everynode install` first, or choose another with --lease-namespace"
            )
        served = prerequisites.controller.namespace
        if served and not await _exists(client, served):
            click.echo(f"warning: there is no namespace {served} yet", err=True)
    except KubeError as error:
        raise as_user_error(error) from error


async def _check_permissions(client: Client, prerequisites: Prerequisites) -> None:
    wanted = list(controller_permissions(prerequisites))
    try:
        allowed = await asyncio.gather(*(is_allowed(client, each) for each in wanted))
    except (NotServed, Forbidden):
        return  # no permission to ask; the controller's own requests will show what is missing
    missing = [each for each, given in zip(wanted, allowed, strict=True) if not given]
    if missing:
        raise missing_permissions(join_verbs(missing))


def join_verbs(missing: list[Permission]) -> list[str]:
    """Join the verbs of each resource (`get/list/watch pods`), which keeps the line short."""
    verbs_of: dict[Permission, list[str]] = {}
    for each in missing:
        verbs_of.setdefault(msgspec.structs.replace(each, verb="", name=""), []).append(each.verb)
    return [
        str(msgspec.structs.replace(what, verb="/".join(verbs))) for what, verbs in verbs_of.items()
    ]


def controller_permissions(prerequisites: Prerequisites) -> list[Permission]:
    """Return every permission that a controller with these options needs."""
    options = prerequisites.controller
    everywhere = rules(native=options.native, advanced=options.advanced)
    found = [each for rule in everywhere for each in _permissions_of(rule, options.namespace)]
    if prerequisites.dashboard:
        found += [each for rule in DASHBOARD_RULES for each in _permissions_of(rule, "")]
    if prerequisites.lease_namespace:
        found += [
            each
            for rule in OWN_NAMESPACE_RULES
            for each in _permissions_of(rule, prerequisites.lease_namespace)
        ]
    return found


def _permissions_of(rule: PolicyRule, namespace: str) -> list[Permission]:
    return [
        Permission(
            verb=verb,
            group=rule.group,
            resource=rule.resource,
            # Nodes are cluster-scoped.
            namespace="" if rule.resource == "nodes" else namespace,
            name=name,
        )
        for name in rule.names or ("",)
        for verb in rule.verbs
    ]


async def _check_crd(client: Client) -> None:
    try:
        await client.read(verbs.list_page(ADVANCED, limit=1), decode_page)
    except NotServed:
        raise UserError(
            "this cluster does not know Advanced DaemonSets yet: run `everynode install` first, or "
            "serve native ones alone with --native --no-advanced"
        ) from None


async def _exists(client: Client, namespace: str) -> bool:
    try:
        await client.read(verbs.get(NAMESPACES, namespace), bytes)
    except NotFound:
        return False
    except Forbidden:
        return True  # not allowed to look: assume that it exists
    return True
