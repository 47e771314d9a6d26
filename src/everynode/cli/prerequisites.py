"""What the controller needs of a cluster, looked at before it starts.

Whoever types `everynode run` is told at once what is missing. In a pod nobody reads that: there the
controller starts all the same, tries again by itself and says in its health what it lacks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import click
import msgspec

from everynode.cli.connection import check_server, explain
from everynode.cli.errors import UserError
from everynode.cli.manifests.rbac import AT_HOME, Rule, rules
from everynode.cli.permissions import Permission, is_allowed, missing_permissions
from everynode.controller.run import Options
from everynode.kube import verbs
from everynode.kube.client import Client, decode_page
from everynode.kube.errors import Forbidden, KubeError, NotFound, NotServed
from everynode.kube.resources import ADVANCED, NAMESPACES


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the controller is going to do."""

    controller: Options
    lease_namespace: str  # empty without leader election


async def check(client: Client, needs: Needs) -> None:
    """Raise UserError if the controller could not work on this cluster."""
    try:
        await check_server(client)
        await _check_permissions(client, needs)
        if needs.controller.advanced:
            await _check_crd(client)
        if needs.lease_namespace and not await _exists(client, needs.lease_namespace):
            raise UserError(
                f"namespace {needs.lease_namespace} for the leader's Lease does not exist: run "
                "`everynode install` first, or choose another with --lease-namespace"
            )
        served = needs.controller.namespace
        if served and not await _exists(client, served):
            click.echo(f"warning: there is no namespace {served} yet", err=True)
    except KubeError as error:
        raise explain(error) from error


async def _check_permissions(client: Client, needs: Needs) -> None:
    wanted = list(_permissions(needs))
    try:
        allowed = await asyncio.gather(*(is_allowed(client, each) for each in wanted))
    except (NotServed, Forbidden):
        return  # one may not even ask; the controller will find out
    missing = [each for each, given in zip(wanted, allowed, strict=True) if not given]
    if missing:
        raise missing_permissions(_join(missing))


def _join(missing: list[Permission]) -> list[str]:
    """The verbs on each resource together, or the line would be far too long."""
    verbs_of: dict[Permission, list[str]] = {}
    for each in missing:
        verbs_of.setdefault(msgspec.structs.replace(each, verb="", name=""), []).append(each.verb)
    return [
        str(msgspec.structs.replace(what, verb="/".join(verbs))) for what, verbs in verbs_of.items()
    ]


def _permissions(needs: Needs) -> list[Permission]:
    options = needs.controller
    everywhere = rules(native=options.native, advanced=options.advanced)
    found = [each for rule in everywhere for each in _split(rule, options.namespace)]
    if needs.lease_namespace:
        found += [each for rule in AT_HOME for each in _split(rule, needs.lease_namespace)]
    return found


def _split(rule: Rule, namespace: str) -> list[Permission]:
    return [
        Permission(
            verb=verb,
            group=rule.group,
            resource=rule.resource,
            # Nodes are in no namespace.
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
        return True  # as far as we are allowed to know
    return True
