"""Bringing objects onto a cluster: everything is tried before anything is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from everynode.cli.connection import one_line
from everynode.cli.errors import UserError
from everynode.cli.manifests.names import MANAGER, Object, is_ours
from everynode.cli.manifests.takeover import is_kruises, take_over
from everynode.cli.permissions import (
    Permission,
    is_allowed,
    missing_permission,
    missing_permissions,
)
from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Conflict, Denied, Forbidden, NotFound, NotServed
from everynode.kube.requests import Request
from everynode.kube.resources import CRDS, NAMESPACES, Resource

ESTABLISHED_WITHIN: Final = 60.0
_LOOK_EVERY: Final = 0.2
_RBAC: Final = "rbac.authorization.k8s.io"
RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        CRDS,
        NAMESPACES,
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource("", "v1", "resourcequotas", "ResourceQuota"),
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Resource("apps", "v1", "deployments", "Deployment"),
    )
}
# They only protect the controller; a small server that has no such kinds runs it all the same.
_SPARED: Final = ("NetworkPolicy", "ResourceQuota")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Outcome(StrEnum):
    """What became of an object, in kubectl's words where it has them."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    LEFT = "left as it is: it was there before"
    SKIPPED = "skipped: the server has no such kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the user has agreed to."""

    adopt_crd: bool = False  # replace the CRD of another product
    force: bool = False  # take fields over from whoever else manages them


@dataclass(slots=True)
class Step:
    """One object to apply, beside what the cluster has now."""

    wanted: Object
    live: Object | None = None
    settled: Outcome | None = None  # nothing is to be done: the reason
    taken_over: bool = False  # another product's, to be replaced

    @property
    def resource(self) -> Resource:
        """The kind as the server's paths name it."""
        return RESOURCES[self.wanted["kind"]]

    @property
    def name(self) -> str:
        """The object's name."""
        name: str = self.wanted["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """The object's namespace, empty if it has none."""
        namespace: str = self.wanted["metadata"].get("namespace", "")
        return namespace

    def __str__(self) -> str:
        kind, group = self.resource.kind.lower(), self.resource.group
        return f"{kind}.{group}/{self.name}" if group else f"{kind}/{self.name}"


@dataclass(slots=True)
class Objections:
    """Everything that speaks against an installation, so that all of it is said at once."""

    missing: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def lacks(self, permission: str) -> None:
        """A permission is missing."""
        if permission not in self.missing:
            self.missing.append(permission)

    def check(self) -> None:
        """Raise UserError if there is any."""
        if self.missing:
            raise missing_permissions(self.missing)
        if self.others:
            raise UserError("; ".join(self.others))


async def plan(client: Client, objects: Sequence[Object], consent: Consent) -> list[Step]:
    """Find out what is to be done and that it can be done; raises UserError, changes nothing."""
    steps = [Step(wanted) for wanted in objects]
    objections = Objections()
    for step in steps:
        await _look(client, step, objections)
    objections.check()
    for step in steps:
        _judge(step, consent, objections)
    objections.check()
    coming = [step.name for step in steps if step.wanted["kind"] == "Namespace" and not step.live]
    for step in steps:
        if step.settled is None:
            await _rehearse(client, step, consent, objections, alone=step.namespace in coming)
    objections.check()
    return steps


async def bring(
    client: Client, clock: Clock, objects: Sequence[Object], consent: Consent
) -> AsyncIterator[tuple[Step, Outcome]]:
    """Apply all objects, one after the other, and tell what became of each; raises UserError."""
    for step in await plan(client, objects, consent):
        yield step, await carry_out(client, step, consent)
        if step.wanted["kind"] == "CustomResourceDefinition":
            await wait_until_established(client, clock, step.name)


async def carry_out(client: Client, step: Step, consent: Consent) -> Outcome:
    """Apply one object."""
    if step.settled is not None:
        return step.settled
    if step.taken_over and step.live is not None:
        await take_over(client, step.live, step.wanted)
    after = await client.write(_request(step, force=consent.force or step.taken_over), _decode)
    if step.live is None:
        return Outcome.CREATED
    same = _content(after) == _content(step.live)
    return Outcome.UNCHANGED if same else Outcome.CONFIGURED


async def wait_until_established(client: Client, clock: Clock, name: str) -> None:
    """Wait until the server serves a custom kind; raises UserError when it refuses to."""
    deadline = clock.monotonic() + ESTABLISHED_WITHIN
    while True:
        live = await client.read(verbs.get(CRDS, name), _decode)
        listed = live.get("status", {}).get("conditions") or ()
        conditions = {each["type"]: each for each in listed}
        if conditions.get("Established", {}).get("status") == "True":
            return
        names = conditions.get("NamesAccepted", {})
        if names.get("status") == "False":
            raise UserError(f"the server does not accept the names of {name}: {names['message']}")
        if clock.monotonic() > deadline:
            raise UserError(
                f"{name} was not established within {ESTABLISHED_WITHIN:.0f} seconds; "
                f"look at it with: kubectl describe crd {name}"
            )
        await clock.sleep(_LOOK_EVERY)


def _content(live: Object) -> Object:
    """Return what only an installation changes; controllers write the rest at any time."""
    rest = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    return {**rest, "labels": live["metadata"].get("labels")}


# --- Before anything is changed ------------------------------------------------------------------


async def _look(client: Client, step: Step, objections: Objections) -> None:
    request = verbs.get(step.resource, step.name, namespace=step.namespace)
    try:
        step.live = await client.read(request, _decode)
    except NotServed:
        if step.wanted["kind"] not in _SPARED:
            raise
        step.settled = Outcome.SKIPPED
    except NotFound:
        pass
    except Forbidden as error:
        objections.lacks(missing_permission(error))


def _judge(step: Step, consent: Consent, objections: Objections) -> None:
    """Look at what is there already: is it ours to change?"""
    if step.live is None:
        return
    match step.wanted["kind"]:
        case "CustomResourceDefinition" if is_kruises(step.live):
            step.taken_over = True
            if not consent.adopt_crd:
                objections.others.append(_whose_crd(step.live))
        case "Namespace":
            if step.live["metadata"].get("deletionTimestamp"):
                objections.others.append(
                    f"namespace {step.name} is being deleted; wait until it is gone"
                )
            elif not is_ours(step.live):
                step.settled = Outcome.LEFT
        case "ClusterRoleBinding" if not consent.force:
            before, after = _home(step.live), _home(step.wanted)
            if before != after:
                objections.others.append(
                    f"Everynode is installed in namespace {before or 'none'} already; install it "
                    f"there with --namespace, or move its permissions to {after} with --force"
                )


def _whose_crd(live: Object) -> str:
    conversion = live["spec"].get("conversion", {})
    by = ""
    if conversion.get("strategy") == "Webhook":
        service = conversion.get("webhook", {}).get("clientConfig", {}).get("service") or {}
        where = f" {service['namespace']}/{service['name']}" if service else ""
        by = f" and is converted by the webhook{where}, which is then no longer asked"
    return (
        f"{live['metadata']['name']} was installed by OpenKruise{by}; stop Kruise's DaemonSet "
        "controller, then run again with --adopt-crd to replace it (the DaemonSets stay)"
    )


def _home(binding: Object) -> str:
    subjects = binding.get("subjects") or [{}]
    namespace: str = subjects[0].get("namespace", "")
    return namespace


async def _rehearse(
    client: Client, step: Step, consent: Consent, objections: Objections, *, alone: bool
) -> None:
    """Have the server try it without doing it; where it cannot, ask whether we would be allowed."""
    try:
        if step.taken_over and step.live is not None:
            await take_over(client, step.live, step.wanted, dry_run=True)
        elif alone:
            await _ask(client, step, objections)
        else:
            await client.write(_request(step, force=consent.force, dry_run=True), _decode)
    except Forbidden as error:
        objections.lacks(missing_permission(error))
    except Conflict as error:
        objections.others.append(
            f"{step} was changed by others: {one_line(error.message)}; "
            "run again with --force to take these fields over"
        )
    except Denied as error:
        said = one_line(error.message)
        if "not currently held" in said:
            said = "one cannot grant permissions that one does not have; this needs cluster-admin"
        objections.others.append(f"the server refuses {step}: {said}")


async def _ask(client: Client, step: Step, objections: Objections) -> None:
    """Ask for the permissions to apply an object whose namespace is still to come."""
    resource = step.resource
    for verb in ("create", "patch"):
        permission = Permission(
            verb=verb,
            group=resource.group,
            resource=resource.plural,
            namespace=step.namespace,
            name=step.name,
        )
        if not await is_allowed(client, permission):
            objections.lacks(str(permission))


def _request(step: Step, *, force: bool, dry_run: bool = False) -> Request:
    return verbs.apply(
        step.resource,
        step.name,
        step.wanted,
        manager=MANAGER,
        namespace=step.namespace,
        force=force,
        dry_run=dry_run,
    )
