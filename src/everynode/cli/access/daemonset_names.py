"""Names of DaemonSets as kubectl takes them: NAME, ads/NAME, ds/NAME; and what they stand for."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import click
import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import DecodeError, require_identity
from everynode.api.selector import SelectorError, parse_query
from everynode.api.validation.names import dns_subdomain
from everynode.api.versions import decode_daemonset
from everynode.cli.access.cluster import Cluster
from everynode.cli.terminal.question import can_ask, interruptible
from everynode.errors import UsageError, UserError
from everynode.kube import verbs
from everynode.kube.errors import Forbidden, NotFound, NotServed
from everynode.kube.permissions import missing_permission, missing_permissions
from everynode.kube.resources import ADVANCED, DAEMONSETS, Resource

RESOURCES: Final = {Flavour.ADVANCED: ADVANCED, Flavour.NATIVE: DAEMONSETS}
# What may stand before the slash; kubectl takes the same words.
_PREFIXES: Final = {
    **dict.fromkeys(("ads", "daemon", "advanceddaemonset"), Flavour.ADVANCED),
    **dict.fromkeys(("ds", "daemonset", "daemonsets"), Flavour.NATIVE),
    **{
        f"{word}.{version}{resource.group}": flavour
        for flavour, resource in RESOURCES.items()
        for word in ("daemonset", "daemonsets")
        for version in ("", "v1.", "v1alpha1.", "v1beta1.")
    },
}


class DaemonSetName(msgspec.Struct, frozen=True):
    """A name as it was typed; without a flavour it may be of either kind."""

    name: str
    flavour: Flavour | None = None

    def __str__(self) -> str:
        return f"{self.flavour.short}/{self.name}" if self.flavour else self.name


class FoundDaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet of the cluster: decoded, and the object itself as the server sent it."""

    ds: DaemonSet
    raw: bytes

    @property
    def resource(self) -> Resource:
        """The resource under which the API server has it."""
        return RESOURCES[self.ds.flavour]

    @property
    def short_name(self) -> str:
        """`ads/NAME` or `ds/NAME`, as one would type it."""
        return self.ds.short_name


def full_name(ds: DaemonSet) -> str:
    """Return `daemonset.apps.kruise.io/NAME`, as `kubectl get -o name` prints it."""
    return f"daemonset.{RESOURCES[ds.flavour].group}/{ds.name}"


def parse_name(text: str) -> DaemonSetName:
    """Parse NAME, ads/NAME or ds/NAME; raises UsageError."""
    prefix, slash, name = text.rpartition("/")
    if slash and prefix.lower() not in _PREFIXES:
        raise UsageError(f"{text}: give NAME, ads/NAME (Advanced) or ds/NAME (native)")
    if any(dns_subdomain(name)):
        raise UsageError(
            f"{text!r} cannot be the name of a DaemonSet: lower case letters, digits, '-' and '.'"
        )
    return DaemonSetName(name, _PREFIXES[prefix.lower()] if slash else None)


async def find_daemonset(cluster: Cluster, text: str) -> FoundDaemonSet:
    """Return the DaemonSet of that name in the namespace of the command.

    Where both kinds have one of that name, the user is asked which, or gets an error if there is
    no terminal. Raises UserError, UsageError and KubeError.
    """
    wanted = parse_name(text)
    flavours = [wanted.flavour] if wanted.flavour else list(RESOURCES)
    answers = await asyncio.gather(
        *(read_daemonset(cluster, flavour, wanted.name) for flavour in flavours)
    )
    found = [answer for answer in answers if isinstance(answer, FoundDaemonSet)]
    if len(found) > 1:
        return _ask_which(cluster, wanted.name, found)
    if found:
        return found[0]
    refusals = [answer for answer in answers if isinstance(answer, Forbidden)]
    if refusals:
        raise missing_permissions([missing_permission(each) for each in refusals])
    raise await _not_found(cluster, wanted)


async def list_daemonsets(
    cluster: Cluster, *, selector: str = "", everywhere: bool = False
) -> tuple[list[DaemonSet], list[str]]:
    """Return the DaemonSets of both kinds by namespace and name, and which rights are missing.

    Raises UsageError for an invalid selector, UserError where neither kind may be listed.
    """
    try:
        parse_query(selector)
    except SelectorError as error:
        raise UsageError(f"--selector {selector}: {error}") from None
    options = verbs.ListOptions(namespace="" if everywhere else cluster.namespace, labels=selector)
    answers = await asyncio.gather(*(_list(cluster, each, options) for each in RESOURCES))
    missing = [each for each in answers if isinstance(each, str)]
    if len(missing) == len(answers):
        raise missing_permissions(missing)
    found = [ds for each in answers if not isinstance(each, str) for ds in each]
    return sorted(found, key=lambda ds: (ds.namespace, ds.name, ds.flavour.value)), missing


async def _list(
    cluster: Cluster, flavour: Flavour, options: verbs.ListOptions
) -> list[DaemonSet] | str:
    decode = require_identity(partial(decode_daemonset, flavour=flavour))
    try:
        return await cluster.client.read_all(RESOURCES[flavour], decode, options=options)
    except NotServed:
        return []
    except Forbidden as error:
        return missing_permission(error)


async def read_daemonset(
    cluster: Cluster, flavour: Flavour, name: str
) -> FoundDaemonSet | Forbidden | NotServed | None:
    """Return the DaemonSet of that kind and name, why it cannot be read, or None."""
    request = verbs.get(RESOURCES[flavour], name, namespace=cluster.namespace)
    try:
        raw = await cluster.client.read(request, bytes)
    except NotServed as error:
        return error
    except NotFound:
        return None
    except Forbidden as error:
        return error
    return FoundDaemonSet(_decode(raw, flavour, name), raw)


def _decode(raw: bytes, flavour: Flavour, name: str) -> DaemonSet:
    try:
        return decode_daemonset(raw, flavour=flavour)
    except DecodeError as error:
        raise UserError(f"{flavour.short}/{name} cannot be read: {error}") from None


def _ask_which(cluster: Cluster, name: str, found: list[FoundDaemonSet]) -> FoundDaemonSet:
    names = [each.short_name for each in found]
    if not can_ask():
        raise UsageError(
            f"namespace {cluster.namespace} has two DaemonSets {name}: type {' or '.join(names)}"
        )
    question = f"There are two DaemonSets {name}. Which one"
    with interruptible():
        choice = click.prompt(question, type=click.Choice(names), err=True)
    return found[names.index(choice)]


async def _not_found(cluster: Cluster, wanted: DaemonSetName) -> UserError:
    """Return the error for a name that no DaemonSet has; it names what was probably meant."""
    where = f"namespace {cluster.namespace}"
    other = await _of_other_kind(cluster, wanted)
    if other is not None:
        return UserError(f"there is no {wanted} in {where}, but there is {other.short_name}")
    served = await _is_served(cluster) if wanted.flavour is Flavour.ADVANCED else True
    if not served:
        return no_crd_error()
    what = str(wanted) if wanted.flavour else f"DaemonSet {wanted}, of neither kind,"
    return UserError(f"there is no {what} in {where}; `everynode get -A` lists all")


async def _of_other_kind(cluster: Cluster, wanted: DaemonSetName) -> FoundDaemonSet | None:
    if wanted.flavour is None:
        return None
    [other] = [flavour for flavour in RESOURCES if flavour is not wanted.flavour]
    answer = await read_daemonset(cluster, other, wanted.name)
    return answer if isinstance(answer, FoundDaemonSet) else None


async def _is_served(cluster: Cluster) -> bool:
    options = verbs.ListOptions(namespace=cluster.namespace)
    try:
        await cluster.client.read(verbs.list_page(ADVANCED, options=options, limit=1), bytes)
    except NotServed:
        return False
    except Forbidden:
        return True
    return True


def no_crd_error() -> UserError:
    """Return the error for a cluster that does not know the Advanced kind."""
    return UserError(
        "this cluster does not know Advanced DaemonSets: their CRD is missing; "
        "run `everynode install`, or choose another --context"
    )
