"""Apply an installation: a dry run of every object, then server-side apply of each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from everynode.clock import Clock
from everynode.errors import UserError, one_line
from everynode.install.metadata import FIELD_MANAGER, Object, is_ours
from everynode.install.rbac import RBAC_GROUP
from everynode.install.takeover import is_kruise_crd, take_over
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Conflict, Denied, Forbidden, NotFound, NotServed
from everynode.kube.permissions import (
    Permission,
    is_allowed,
    missing_permission,
    missing_permissions,
)
from everynode.kube.requests import Request
from everynode.kube.resources import CRDS, NAMESPACES, Resource

ESTABLISHED_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.2
RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        CRDS,
        NAMESPACES,
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource("", "v1", "resourcequotas", "ResourceQuota"),
        Resource(RBAC_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource(RBAC_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource(RBAC_GROUP, "v1", "roles", "Role"),
        Resource(RBAC_GROUP, "v1", "rolebindings", "RoleBinding"),
        Resource(
            "flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False
        ),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Resource("apps", "v1", "deployments", "Deployment"),
    )
}
# Kinds that only protect the controller: skipped if the server does not have them.
_OPTIONAL_KINDS: Final = ("FlowSchema", "NetworkPolicy", "ResourceQuota")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class StepOutcome(StrEnum):
    """The outcome of one object, printed as kubectl prints it."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    LEFT = "left as it is: it was there before"
    SKIPPED = "skipped: the server has no such kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What the user has allowed with flags."""

    adopt_crd: bool = False  # replace the CRD of another product
    force: bool = False  # take over fields of other field managers


@dataclass(slots=True)
class InstallStep:
    """One object to apply, and the live object on the cluster."""

    wanted: Object
    live: Object | None = None
    early_outcome: StepOutcome | None = None  # set if the object is not applied
    taken_over: bool = False  # the live object is OpenKruise's and is replaced

    @property
    def resource(self) -> Resource:
        """The resource of the object's kind."""
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
class Problems:
    """All reasons why an installation cannot be done, reported together."""

    missing: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add_missing(self, permission: str) -> None:
        """Add a missing permission."""
        if permission not in self.missing:
            self.missing.append(permission)

    def check(self) -> None:
        """Raise UserError if there is a problem."""
        if self.missing:
            raise missing_permissions(self.missing)
        if self.others:
            raise UserError("; ".join(self.others))


async def plan(client: Client, objects: Sequence[Object], consent: Consent) -> list[InstallStep]:
    """Plan the installation with dry runs; changes nothing. Raises UserError with all problems."""
    steps = [InstallStep(wanted) for wanted in objects]
    problems = Problems()
    for step in steps:
        await _read_live(client, step, problems)
    problems.check()
    for step in steps:
        _check_ownership(step, consent, problems)
    problems.check()
    coming = [step.name for step in steps if step.wanted["kind"] == "Namespace" and not step.live]
    for step in steps:
        if step.early_outcome is None:
            await _dry_run(client, step, consent, problems, alone=step.namespace in coming)
    problems.check()
    return steps


async def apply_all(
    client: Client, clock: Clock, objects: Sequence[Object], consent: Consent
) -> AsyncIterator[tuple[InstallStep, StepOutcome]]:
    """Apply all objects in order and yield the outcome of each; raises UserError."""
    for step in await plan(client, objects, consent):
        yield step, await apply_step(client, step, consent)
        if step.wanted["kind"] == "CustomResourceDefinition":
            await wait_until_established(client, clock, step.name)


async def apply_step(client: Client, step: InstallStep, consent: Consent) -> StepOutcome:
    """Apply one object."""
    if step.early_outcome is not None:
        return step.early_outcome
    if step.taken_over and step.live is not None:
        await take_over(client, step.live, step.wanted)
    after = await client.write(_request(step, force=consent.force or step.taken_over), _decode)
    if step.live is None:
        return StepOutcome.CREATED
    same = _installed_fields(after) == _installed_fields(step.live)
    return StepOutcome.UNCHANGED if same else StepOutcome.CONFIGURED


async def wait_until_established(client: Client, clock: Clock, name: str) -> None:
    """Wait until a CRD is Established; raises UserError if its names are refused."""
    deadline = clock.monotonic() + ESTABLISHED_TIMEOUT
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
                f"{name} was not established within {ESTABLISHED_TIMEOUT:.0f} seconds; "
                f"look at it with: kubectl describe crd {name}"
            )
        await clock.sleep(_POLL_INTERVAL)


def _installed_fields(live: Object) -> Object:
    """The fields that only an installation changes; controllers may write the others."""
    rest = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    return {**rest, "labels": live["metadata"].get("labels")}


# --- Before anything is changed ------------------------------------------------------------------


async def _read_live(client: Client, step: InstallStep, problems: Problems) -> None:
    request = verbs.get(step.resource, step.name, namespace=step.namespace)
    try:
        step.live = await client.read(request, _decode)
    except NotServed:
        if step.wanted["kind"] not in _OPTIONAL_KINDS:
            raise
        step.early_outcome = StepOutcome.SKIPPED
    except NotFound:
        pass
    except Forbidden as error:
        problems.add_missing(missing_permission(error))


def _check_ownership(step: InstallStep, consent: Consent, problems: Problems) -> None:
    """Decide whether the live object may be changed, replaced, or is left alone."""
    if step.live is None:
        return
    match step.wanted["kind"]:
        case "CustomResourceDefinition" if is_kruise_crd(step.live):
            step.taken_over = True
            if not consent.adopt_crd:
                problems.others.append(_kruise_crd_message(step.live))
        case "Namespace":
            if step.live["metadata"].get("deletionTimestamp"):
                problems.others.append(
                    f"namespace {step.name} is being deleted; wait until it is gone"
                )
            elif not is_ours(step.live):
                step.early_outcome = StepOutcome.LEFT
        case "ClusterRoleBinding" if not consent.force:
            before, after = _bound_namespace(step.live), _bound_namespace(step.wanted)
            if before != after:
                problems.others.append(
                    f"Everynode is installed in namespace {before or 'none'} already; install it "
                    f"there with --namespace, or move its permissions to {after} with --force"
                )


def _kruise_crd_message(live: Object) -> str:
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


def _bound_namespace(binding: Object) -> str:
    subjects = binding.get("subjects") or [{}]
    namespace: str = subjects[0].get("namespace", "")
    return namespace


async def _dry_run(
    client: Client, step: InstallStep, consent: Consent, problems: Problems, *, alone: bool
) -> None:
    """Dry-run one object; in a namespace that does not exist yet check permissions instead."""
    try:
        if step.taken_over and step.live is not None:
            await take_over(client, step.live, step.wanted, dry_run=True)
        elif alone:
            await _check_permissions(client, step, problems)
        else:
            await client.write(_request(step, force=consent.force, dry_run=True), _decode)
    except Forbidden as error:
        problems.add_missing(missing_permission(error))
    except Conflict as error:
        problems.others.append(
            f"{step} was changed by others: {one_line(error.message)}; "
            "run again with --force to take these fields over"
        )
    except Denied as error:
        message = one_line(error.message)
        if "not currently held" in message:
            message = "you cannot grant permissions that you do not have; this needs cluster-admin"
        problems.others.append(f"the server refuses {step}: {message}")


async def _check_permissions(client: Client, step: InstallStep, problems: Problems) -> None:
    """Check the permissions to apply an object whose namespace does not exist yet."""
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
            problems.add_missing(str(permission))


def _request(step: InstallStep, *, force: bool, dry_run: bool = False) -> Request:
    return verbs.apply(
        step.resource,
        step.name,
        step.wanted,
        manager=FIELD_MANAGER,
        namespace=step.namespace,
        force=force,
        dry_run=dry_run,
    )
