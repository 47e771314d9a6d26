"""Facts of the embedded cluster, also for readers with few rights; nothing is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.cli.checkup.facts import Facts, StatusManager
from everynode.cli.checkup.findings import find
from everynode.cli.checkup.reader import FactReader
from everynode.clock import Clock
from everynode.install import InstallOptions, install_objects
from everynode.install.apply import Consent, apply_all
from everynode.kube.requests import Request, Response
from tests.support.install_cluster import Served

Object = dict[str, Any]
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
HOOKS = "/apis/admissionregistration.k8s.io/v1/"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Restricted(Served):
    """A cluster that answers some paths differently: refused, or with an object."""

    def __init__(self, *refused: str, answers: dict[str, Object] | None = None) -> None:
        super().__init__()
        self._refused = refused
        self._answers = answers or {}
        self.asked: list[Object] = []

    async def send(self, request: Request) -> Response:
        if any(part in request.path for part in self._refused):
            group, resource = request.path.split("/")[-3], request.path.split("/")[-1]
            message = f'cannot list resource "{resource}" in API group "{group}"'
            status = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": message}
            return Response(403, json.dumps(status).encode(), {})
        if request.path in self._answers:
            if request.body:
                self.asked.append(json.loads(request.body))
            return Response(200, json.dumps(self._answers[request.path]).encode(), {})
        return await super().send(request)

    async def facts(self, *, native: bool = False) -> Facts:
        before = list(self.written)
        reader = FactReader(self.client, namespace="everynode-system", native=native)
        found = await reader.read()
        assert [each for each in self.written if each not in before] == []
        return found

    async def install(self, *, native: bool = False) -> None:
        wanted = install_objects(InstallOptions(image="everynode:test", native=native))
        clock: Clock = self.clock
        async for _ in apply_all(self.client, clock, wanted, Consent()):
            pass


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    pod = {"containers": [{"name": "manager", "image": "manager:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def checks(facts: Facts) -> list[str]:
    return [each.check for each in find(facts)]


async def test_a_new_cluster_lacks_a_controller() -> None:
    facts = await Restricted().facts()
    assert facts.version >= (1, 30)
    assert checks(facts) == ["controller"]
    assert facts.not_checked == ()


async def test_an_installation_is_found_and_its_account_cannot_be_asked_about_here() -> None:
    served = Restricted()
    await served.install(native=True)
    facts = await served.facts()
    assert facts.native
    assert len(facts.flow_schemas or ()) == 2
    # No node runs its pods.
    assert checks(facts) == ["controller"]
    assert facts.not_checked == ("the server has no subjectaccessreviews.authorization.k8s.io",)


async def test_the_server_is_asked_what_the_service_account_may_do() -> None:
    served = Restricted(answers={REVIEWS: {"status": {"allowed": False}}})
    await served.install()
    facts = await served.facts()
    assert "permissions" in checks(facts)
    assert {each["spec"]["user"] for each in served.asked} == {
        "system:serviceaccount:everynode-system:everynode"
    }
    assert served.asked[0]["spec"]["groups"][1] == "system:serviceaccounts:everynode-system"
    asked = {each["spec"]["resourceAttributes"]["resource"] for each in served.asked}
    assert {"daemonsets", "pods", "nodes", "leases", "events"} <= asked


async def test_kruise_is_found_in_any_namespace() -> None:
    hook = {"clientConfig": {"service": {"name": "kruise-webhook-service"}}}
    other = {"clientConfig": {"service": {"name": "gatekeeper"}}}
    listed = {
        "kind": "List",
        "metadata": {},
        "items": [
            {"metadata": {"name": "kruise"}, "webhooks": [hook]},
            {"metadata": {"name": "gatekeeper"}, "webhooks": [other]},
        ],
    }
    served = Restricted(answers={f"{HOOKS}mutatingwebhookconfigurations": listed})
    await served.have_kruises_crd()
    path = DEPLOYMENTS.format("default")
    await served.ask("POST", path, deployment("kruise-controller-manager", 2))
    await served.ask("POST", path, deployment("bystander", 2))
    facts = await served.facts()
    found = find(facts)
    assert [each.check for each in found] == [
        *("crd", "kruise-controller", "crd-helm", "kruise-webhooks", "controller"),
    ]
    assert "kubectl delete mutatingwebhookconfiguration kruise" in str(found[3])


async def test_the_writers_of_statuses_are_read_from_metadata() -> None:
    served = Restricted()
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    native = deployment("agent", 0)
    native["kind"] = "DaemonSet"
    del native["spec"]["replicas"]
    await served.ask("POST", path, native)
    await served.ask("PATCH", f"{path}/agent/status", {"status": {"numberReady": 1}})
    assert (await served.facts()).native_writers == ()
    facts = await served.facts(native=True)
    assert facts.native_writers == (StatusManager("default/agent", "another", False),)
    assert checks(facts) == ["native-controller", "controller"]


@pytest.mark.parametrize(
    "group", ["apiextensions", "admissionregistration", "/apps.kruise.io/", "reviews"]
)
async def test_a_reader_with_few_rights_gets_the_rest(group: str) -> None:
    served = Restricted(group)
    facts = await served.facts(native=True)
    assert checks(facts) == ["controller"]
    [line] = facts.not_checked
    assert line.startswith("you lack the permission to list ")


async def test_without_any_right_nothing_is_found_and_each_gap_is_named() -> None:
    facts = await Restricted("/apis/").facts(native=True)
    assert find(facts) == []
    assert len(facts.not_checked) >= 6


async def test_flow_schemas_are_no_finding_where_one_may_not_look() -> None:
    served = Restricted()
    await served.install()
    served._refused = ("flowcontrol",)
    facts = await served.facts()
    assert facts.flow_schemas is None
    assert "flow-schemas" not in checks(facts)
