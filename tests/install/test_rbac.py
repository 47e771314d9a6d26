from __future__ import annotations

import pytest

from everynode.install import InstallOptions, install_objects
from everynode.install.rbac import (
    DASHBOARD_RULES,
    OWN_NAMESPACE_RULES,
    PolicyRule,
    rbac_objects,
    rules,
    user_roles,
)

WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def verbs_on(resource: str, given: tuple[PolicyRule, ...]) -> set[str]:
    return {verb for rule in given if rule.resource == resource for verb in rule.verbs}


@pytest.mark.parametrize("native", [True, False])
def test_no_rule_holds_a_wildcard(native: bool) -> None:
    for rule in (*rules(native=native), *OWN_NAMESPACE_RULES):
        assert "*" not in (rule.group, rule.resource, *rule.verbs)


def test_secrets_are_never_read() -> None:
    assert verbs_on("secrets", (*rules(native=True), *OWN_NAMESPACE_RULES)) == set()


def test_nodes_are_never_written() -> None:
    named = [rule for rule in rules(native=True) if rule.resource.startswith("nodes")]
    assert [rule.resource for rule in named] == ["nodes"]
    assert not WRITES & {*named[0].verbs}


def test_the_daemonset_itself_is_only_read() -> None:
    assert verbs_on("daemonsets", rules(native=True)) == {"get", "list", "watch"}


def test_native_daemonsets_are_touched_only_when_asked_for() -> None:
    kinds = [(rule.group, rule.resource) for rule in rules(native=False)]
    assert ("apps", "daemonsets") not in kinds
    assert ("apps", "daemonsets") in [(rule.group, rule.resource) for rule in rules(native=True)]


def test_the_dashboard_reviews_and_reads_only_when_asked_for() -> None:
    plain = install_objects(InstallOptions())
    more = install_objects(InstallOptions(dashboard=True))
    assert all(each in more for each in plain)
    added = [each for each in more if each not in plain]
    assert [each["metadata"]["name"] for each in added] == [
        "everynode-dashboard",
        "everynode-dashboard",
        "everynode-dashboard-viewer",
    ]
    created = {rule.resource for rule in DASHBOARD_RULES if WRITES & {*rule.verbs}}
    assert created == {"tokenreviews", "subjectaccessreviews"}  # reviews change nothing
    assert verbs_on("events", DASHBOARD_RULES) == {"list"}


def test_every_rule_has_its_reason() -> None:
    assert all(rule.why for rule in (*rules(native=True), *OWN_NAMESPACE_RULES))


def test_only_our_own_lease_can_be_changed() -> None:
    changing = [
        rule for rule in OWN_NAMESPACE_RULES if rule.resource == "leases" and "patch" in rule.verbs
    ]
    assert [rule.names for rule in changing] == [("everynode",)]
    assert verbs_on("leases", rules(native=True)) == set()


def test_the_roles_are_bound_to_the_account_of_the_chosen_namespace() -> None:
    bindings = [each for each in rbac_objects("agents", native=False) if "Binding" in each["kind"]]
    homes = [subject["namespace"] for each in bindings for subject in each["subjects"]]
    assert homes == ["agents", "agents"]


def test_users_roles_join_the_built_in_ones() -> None:
    labels = [each["metadata"]["labels"] for each in user_roles()]
    assert labels[0]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert labels[1]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"


def test_no_object_but_the_roles_grants_anything() -> None:
    granting = [
        each["kind"] for each in install_objects(InstallOptions(image="x")) if "rules" in each
    ]
    assert granting == ["ClusterRole", "Role", "ClusterRole", "ClusterRole"]
