"""Findings: what in a cluster gets in Everynode's way, each with its remedy.

Pure functions of the facts. An error must be fixed before Everynode works as promised; a warning
should be known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

import everynode
from everynode.api.crd import crd
from everynode.api.keys import FIELD_MANAGER
from everynode.api.validation.lint import Severity
from everynode.cli.access.connection import OLDEST_SUPPORTED
from everynode.cli.access.prerequisites import join_verbs
from everynode.cli.checkup.facts import KRUISE_CONTROLLER, Facts, Object, StatusManager
from everynode.cli.terminal.text import format_count
from everynode.install.flow_schemas import flow_schemas
from everynode.install.metadata import is_ours
from everynode.install.takeover import helm_release, is_kruise_crd

_MAX_NAMED: Final = 3  # names in one line


class Finding(msgspec.Struct, frozen=True):
    """One thing that is in the way, and what to do about it."""

    severity: Severity
    check: str  # what was looked at; stable, for programs
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.message}; {self.remedy}"


def find(facts: Facts) -> list[Finding]:
    """Return everything that is in the way, errors first."""
    found = [finding for check in _CHECKS for finding in check(facts)]
    return sorted(found, key=lambda each: each.severity is not Severity.ERROR)


# --- The cluster ---------------------------------------------------------------------------------


def _version(facts: Facts) -> Iterator[Finding]:
    if facts.version < OLDEST_SUPPORTED:
        is_version, oldest = (
            f"{major}.{minor}" for major, minor in (facts.version, OLDEST_SUPPORTED)
        )
        yield Finding(
            Severity.ERROR,
            "version",
            f"this is Kubernetes {is_version}, and {oldest} is the oldest that Everynode is made "
            "for",
            "upgrade the cluster",
        )


def _crd(facts: Facts) -> Iterator[Finding]:
    if facts.crd is None:
        return
    if not facts.crd:
        yield Finding(
            Severity.ERROR,
            "crd",
            "this cluster does not know Advanced DaemonSets: their CRD is missing",
            "run `everynode install`",
        )
        return
    [live] = facts.crd
    name = live["metadata"]["name"]
    if is_kruise_crd(live):
        yield Finding(
            Severity.ERROR,
            "crd",
            f"{name} was installed by OpenKruise{_converted_by(live)}",
            "stop Kruise's controller, then run `everynode install --adopt-crd`; the DaemonSets "
            "stay",
        )
    elif not _contains(live["spec"]["versions"], crd()["spec"]["versions"]):
        yield _other_crd(live)
    if release := helm_release(live):
        yield Finding(
            Severity.WARNING,
            "crd-helm",
            f"{name} came with the Helm release {release}: uninstalling that deletes the CRD and "
            "all Advanced DaemonSets",
            f"annotate the CRD with helm.sh/resource-policy=keep before you touch {release}",
        )
    yield from _not_established(live)


def _converted_by(live: Object) -> str:
    conversion = live["spec"].get("conversion", {})
    if conversion.get("strategy") != "Webhook":
        return ""
    service = conversion.get("webhook", {}).get("clientConfig", {}).get("service") or {}
    where = f" {service.get('namespace')}/{service.get('name')}" if service else ""
    return f" and is converted by the webhook{where}: without it no Advanced DaemonSet can be read"


def _other_crd(live: Object) -> Finding:
    name = live["metadata"]["name"]
    if not is_ours(live):
        return Finding(
            Severity.ERROR,
            "crd",
            f"{name} is not the definition that Everynode installs: fields may be lost",
            "run `everynode install`",
        )
    version = live["metadata"]["labels"].get("app.kubernetes.io/version", "another version")
    return Finding(
        Severity.WARNING,
        "crd",
        f"{name} is of Everynode {version}, and this is {everynode.__version__}",
        "run `everynode install` of the newer of the two",
    )


def _not_established(live: Object) -> Iterator[Finding]:
    conditions = live.get("status", {}).get("conditions") or ()
    for each in conditions:
        refused = each["type"] in ("Established", "NamesAccepted") and each["status"] == "False"
        terminating = each["type"] == "Terminating" and each["status"] == "True"
        if refused or terminating:
            name = live["metadata"]["name"]
            yield Finding(
                Severity.ERROR,
                "crd",
                f"{name} is {'being deleted' if terminating else 'not served'}: "
                f"{each.get('message', '')}",
                f"look at it with `kubectl describe crd {name}`",
            )
            return


def _contains(live: Any, wanted: Any) -> bool:
    """Whether everything wanted is in the live value, which may have more fields."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(key in live and _contains(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(live) == len(wanted) and all(map(_contains, live, wanted))
    return bool(live == wanted)


# --- Other controllers ---------------------------------------------------------------------------


def _kruise_controller(facts: Facts) -> Iterator[Finding]:
    for each in _running(facts.kruise_controllers):
        namespace = each["metadata"]["namespace"]
        yield Finding(
            Severity.ERROR,
            "kruise-controller",
            f"Kruise's controller runs in namespace {namespace}: the two cannot share Advanced "
            "DaemonSets",
            f"kubectl -n {namespace} scale deployment {KRUISE_CONTROLLER} --replicas=0",
        )


def _running(deployments: Sequence[Object] | None) -> list[Object]:
    # An absent number of replicas means one.
    return [each for each in deployments or () if each["spec"].get("replicas", 1) != 0]


def _kruise_webhooks(facts: Facts) -> Iterator[Finding]:
    # While Kruise runs its webhooks answer; they are in the way as soon as it is stopped.
    answered = bool(_running(facts.kruise_controllers)) or facts.kruise_controllers is None
    for each in facts.webhooks or ():
        closed = [
            hook
            for hook in each.get("webhooks") or ()
            if hook.get("failurePolicy", "Fail") == "Fail"
        ]
        if not closed:
            continue
        name, kind = each["metadata"]["name"], each["kind"]
        when = "when Kruise is stopped" if answered else "now, as Kruise does not run"
        yield Finding(
            Severity.WARNING if answered else Severity.ERROR,
            "kruise-webhooks",
            f"{name} ({format_count(len(closed), 'webhook')}) fails closed: it refuses pods and "
            f"DaemonSets {when}",
            f"kubectl delete {kind.lower()} {name}",
        )


def _advanced_writers(facts: Facts) -> Iterator[Finding]:
    yield from _other_writers(
        facts.advanced_writers or (),
        "Advanced",
        "status-writers",
        "stop the other controller",
    )


def _native_writers(facts: Facts) -> Iterator[Finding]:
    if facts.native:
        yield from _other_writers(
            facts.native_writers or (),
            "native",
            "native-controller",
            "start kube-controller-manager with --controllers=*,-daemonset-controller, or serve "
            "Advanced DaemonSets alone, without --native",
        )


def _other_writers(
    writers: Sequence[StatusManager], kind: str, check: str, remedy: str
) -> Iterator[Finding]:
    """Yield one finding for each manager that wrote statuses after Everynode, or without it."""
    others = [each for each in writers if each.last not in ("", FIELD_MANAGER)]
    for manager in sorted({each.last for each in others}):
        theirs = [each for each in others if each.last == manager]
        after_us = [each for each in theirs if each.ours]
        named = after_us or theirs
        what = f"the status of {format_count(len(named), f'{kind} DaemonSet')} ({_names(named)})"
        if after_us:
            message = f"{manager} writes {what} beside Everynode"
        else:
            message = f"{manager} was the last to write {what}"
        severity = Severity.ERROR if after_us else Severity.WARNING
        yield Finding(severity, check, message, remedy)


def _names(writers: Sequence[StatusManager]) -> str:
    names = ", ".join(each.daemonset for each in writers[:_MAX_NAMED])
    more = len(writers) - _MAX_NAMED
    return f"{names} and {more} more" if more > 0 else names


# --- Everynode itself ----------------------------------------------------------------------------


def _controller(facts: Facts) -> Iterator[Finding]:
    if facts.controller is None or facts.lease is None:
        return
    if not facts.controller:
        writers = (*(facts.advanced_writers or ()), *(facts.native_writers or ()))
        if not facts.lease and not any(each.ours for each in writers):
            yield Finding(
                Severity.WARNING,
                "controller",
                f"no controller is installed in namespace {facts.namespace}",
                "run `everynode install --image IMAGE`, or `everynode run`, or say where it is "
                "with --namespace",
            )
        return
    [live] = facts.controller
    if not live.get("status", {}).get("readyReplicas"):
        yield Finding(
            Severity.ERROR,
            "controller",
            f"no replica of deployment/everynode in namespace {facts.namespace} is ready",
            f"look at it with `kubectl -n {facts.namespace} describe pods`",
        )


def _account_permissions(facts: Facts) -> Iterator[Finding]:
    if facts.missing_for_account:
        native = " --native" if facts.native else ""
        yield Finding(
            Severity.ERROR,
            "permissions",
            f"the controller's service account {facts.namespace}/everynode may not "
            + ", ".join(join_verbs(list(facts.missing_for_account))),
            f"run `everynode install{native}` again with your other options",
        )


def _your_permissions(facts: Facts) -> Iterator[Finding]:
    if facts.missing_for_you:
        # Where the controller is installed, a person only looks.
        installed = bool(facts.controller)
        yield Finding(
            Severity.WARNING if installed else Severity.ERROR,
            "own-permissions",
            f"you may not {', '.join(join_verbs(list(facts.missing_for_you)))}",
            "ask a cluster administrator for it, or choose another --context",
        )


def _flow_schemas(facts: Facts) -> Iterator[Finding]:
    if not facts.controller or facts.flow_schemas is None:
        return
    live = {each["metadata"]["name"]: each for each in facts.flow_schemas}
    lacking = [
        wanted["metadata"]["name"]
        for wanted in flow_schemas(facts.namespace)
        if not _contains(live.get(wanted["metadata"]["name"], {}).get("spec"), wanted["spec"])
    ]
    if lacking:
        yield Finding(
            Severity.WARNING,
            "flow-schemas",
            f"the FlowSchemas {', '.join(lacking)} are missing or changed: on a busy API server "
            "the controller waits behind all other clients",
            "run `everynode install` again",
        )


_CHECKS: Final[tuple[Callable[[Facts], Iterator[Finding]], ...]] = (
    _version,
    _crd,
    _kruise_controller,
    _kruise_webhooks,
    _advanced_writers,
    _native_writers,
    _controller,
    _account_permissions,
    _your_permissions,
    _flow_schemas,
)
