"""Findings are functions of the facts: one row each, and facts that are no finding."""

from __future__ import annotations

from typing import Any

import pytest

from everynode.api.validation.lint import Severity
from everynode.cli.checkup.facts import Facts, StatusManager, status_writer
from everynode.cli.checkup.findings import find
from everynode.install import InstallOptions, install_objects
from everynode.install.flow_schemas import flow_schemas
from everynode.kube.permissions import Permission
from tests.support.install_cluster import KRUISES_CRD

Object = dict[str, Any]
OURS = install_objects(InstallOptions())[0]
RUNS = {"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}
KRUISE = {"metadata": {"namespace": "kruise-system"}, "spec": {}}
STOPPED = {"metadata": {"namespace": "kruise-system"}, "spec": {"replicas": 0}}
HOOKS = {
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "kruise-validating-webhook-configuration"},
    "webhooks": [{"failurePolicy": "Fail"}, {}, {"failurePolicy": "Ignore"}],
}
OPEN_HOOKS = {**HOOKS, "webhooks": [{"failurePolicy": "Ignore"}]}
PATCH_PODS = Permission(verb="patch", group="", resource="pods")
LIST_PODS = Permission(verb="list", group="", resource="pods")


def facts(**changed: Any) -> Facts:
    """A cluster with a healthy installation, but for what is changed."""
    healthy: Object = {
        "version": (1, 36),
        "namespace": "everynode-system",
        "crd": (OURS,),
        "controller": (RUNS,),
        "flow_schemas": tuple(flow_schemas("everynode-system")),
    }
    return Facts(**{**healthy, **changed})


def other_crd(version: str = "") -> Object:
    """A CRD with fewer fields than ours."""
    labels = {"app.kubernetes.io/part-of": "everynode", "app.kubernetes.io/version": version}
    metadata = {"name": "daemonsets.apps.kruise.io", "labels": labels if version else {}}
    return {"metadata": metadata, "spec": {**OURS["spec"], "versions": [{"name": "v1beta1"}]}}


def refused_crd(kind: str, status: str) -> Object:
    condition = {"type": kind, "status": status, "message": "names are taken"}
    return {**OURS, "status": {"conditions": [condition]}}


def kcm(*, ours: bool) -> tuple[StatusManager, ...]:
    return tuple(
        StatusManager(f"kube-system/a{number}", "kube-controller-manager", ours)
        for number in range(5)
    )


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"version": (1, 30)},
        {"version": (2, 0)},
        {"kruise_controllers": (STOPPED,)},
        {"webhooks": (OPEN_HOOKS,)},
        {"flow_schemas": None},
        # The server adds defaults to what was installed.
        {"crd": ({**OURS, "spec": {**OURS["spec"], "preserveUnknownFields": False}},)},
        {"crd": (refused_crd("Established", "True"),)},
        # Statuses of native DaemonSets matter only where native ones are served.
        {"native_writers": kcm(ours=False)},
        {"native": True, "native_writers": (StatusManager("a/b", "everynode", True),)},
        {"native": True, "native_writers": (StatusManager("a/new", "", False),)},
        # Run elsewhere: as a Lease or a status tells.
        {"controller": (), "lease": ({},)},
        {"controller": (), "advanced_writers": (StatusManager("a/b", "everynode", True),)},
        # Nothing could be read.
        {"crd": None, "controller": None, "kruise_controllers": None, "webhooks": None},
        {"advanced_writers": None, "native_writers": None, "lease": None, "native": True},
    ],
)
def test_nothing_is_in_the_way(changed: Object) -> None:
    assert find(facts(**changed)) == []


ERRORS: list[tuple[str, Object, str]] = [
    ("version", {"version": (1, 29)}, "this is Kubernetes 1.29, and 1.30 is the oldest"),
    ("crd", {"crd": ()}, "their CRD is missing; run `everynode install`"),
    ("crd", {"crd": (other_crd(),)}, "is not the definition that Everynode installs"),
    ("crd", {"crd": (refused_crd("Established", "False"),)}, "is not served: names are taken"),
    ("crd", {"crd": (refused_crd("Terminating", "True"),)}, "is being deleted"),
    (
        "kruise-controller",
        {"kruise_controllers": (KRUISE, STOPPED)},
        "kubectl -n kruise-system scale deployment kruise-controller-manager --replicas=0",
    ),
    (
        "kruise-webhooks",
        {"webhooks": (HOOKS,), "kruise_controllers": (STOPPED,)},
        (
            "configuration (2 webhooks) fails closed: it refuses pods and DaemonSets now, as "
            "Kruise does not run; kubectl delete validatingwebhookconfiguration kruise-"
        ),
    ),
    (
        "native-controller",
        {"native": True, "native_writers": kcm(ours=True)},
        (
            "kube-controller-manager writes the status of 5 native DaemonSets (kube-system/a0, "
            "kube-system/a1, kube-system/a2 and 2 more) beside Everynode; start kube-controller-"
        ),
    ),
    (
        "status-writers",
        {"advanced_writers": (StatusManager("a/b", "kruise-manager", True),)},
        "kruise-manager writes the status of 1 Advanced DaemonSet (a/b) beside Everynode",
    ),
    ("controller", {"controller": ({"spec": {}},)}, "no replica of deployment/everynode"),
    (
        "permissions",
        {"missing_for_account": (PATCH_PODS, LIST_PODS), "native": True},
        "everynode-system/everynode may not patch/list pods; run `everynode install --native`",
    ),
    (
        "own-permissions",
        {"missing_for_you": (PATCH_PODS,), "controller": (), "lease": ({},)},
        "you may not patch pods; ask a cluster administrator",
    ),
]
WARNINGS: list[tuple[str, Object, str]] = [
    ("crd", {"crd": (other_crd("0.0.9"),)}, "is of Everynode 0.0.9, and this is "),
    (
        "native-controller",
        {"native": True, "native_writers": kcm(ours=False)[:1]},
        "kube-controller-manager was the last to write the status of 1 native DaemonSet",
    ),
    ("controller", {"controller": ()}, "no controller is installed in namespace everynode-system"),
    ("own-permissions", {"missing_for_you": (LIST_PODS,)}, "you may not list pods"),
    (
        "flow-schemas",
        {"flow_schemas": ()},
        "the FlowSchemas everynode-leader-election, everynode are missing or changed",
    ),
    (
        "flow-schemas",
        {"flow_schemas": (flow_schemas("agents")[0], flow_schemas("everynode-system")[1])},
        "the FlowSchemas everynode-leader-election are missing or changed",
    ),
    (
        "kruise-webhooks",
        {"webhooks": (HOOKS,), "kruise_controllers": None},
        "when Kruise is stopped",
    ),
]


@pytest.mark.parametrize(
    ("severity", "check", "changed", "words"),
    [
        *((Severity.ERROR, *row) for row in ERRORS),
        *((Severity.WARNING, *row) for row in WARNINGS),
    ],
)
def test_one_thing_is_in_the_way(
    severity: Severity, check: str, changed: Object, words: str
) -> None:
    [finding] = find(facts(**changed))
    assert (finding.severity, finding.check) == (severity, check)
    assert words in str(finding)
    assert "\n" not in str(finding)


def test_kruises_crd_is_named_with_its_webhook_and_its_helm_release() -> None:
    error, warning = find(facts(crd=(KRUISES_CRD,)))
    assert "converted by the webhook kruise-system/kruise-webhook-service" in error.message
    assert "everynode install --adopt-crd" in error.remedy
    assert "the Helm release kruise" in warning.message
    old = {**KRUISES_CRD, "spec": {**KRUISES_CRD["spec"], "conversion": {"strategy": "None"}}}
    assert "webhook" not in find(facts(crd=(old,)))[0].message


def test_errors_come_first() -> None:
    found = find(facts(flow_schemas=(), crd=(KRUISES_CRD,), missing_for_account=(PATCH_PODS,)))
    assert [each.severity.value for each in found] == ["error", "error", "warning", "warning"]


def entry(manager: str, day: int, subresource: str = "status") -> Object:
    return {"manager": manager, "time": f"2026-01-0{day}T00:00:00Z", "subresource": subresource}


@pytest.mark.parametrize(
    ("entries", "last", "ours"),
    [
        ([], "", False),
        ([entry("kubectl", 9, "")], "", False),
        ([entry("everynode", 2), entry("x", 1)], "everynode", True),
        ([entry("everynode", 1), entry("x", 2)], "x", True),
        ([entry("x", 1), entry("everynode", 1)], "x", True),
        ([entry("x", 1)], "x", False),
    ],
)
def test_the_last_writer_of_a_status(entries: list[Object], last: str, ours: bool) -> None:
    metadata = {"namespace": "a", "name": "b", "managedFields": entries}
    assert status_writer(metadata, "everynode") == StatusManager("a/b", last, ours)
