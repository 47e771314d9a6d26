from __future__ import annotations

import asyncio

import pytest

from everynode.errors import UserError
from everynode.install import InstallOptions, install_objects
from everynode.install.apply import Consent, StepOutcome, apply_step, plan, wait_until_established
from everynode.kube.client import Client
from everynode.kube.requests import Response
from tests.support.install_cluster import OUR_CRD, Served
from tests.support.scripted_server import ScriptedTransport, failure

NOTHING = Consent()
DEPLOYMENT = "/apis/apps/v1/namespaces/everynode-system/deployments/everynode"
ALL = InstallOptions(image="everynode:1")


async def install(
    served: Served, settings: InstallOptions = ALL, consent: Consent = NOTHING
) -> dict[str, StepOutcome]:
    steps = await plan(served.client, install_objects(settings), consent)
    return {str(step): await apply_step(served.client, step, consent) for step in steps}


async def test_what_is_missing_is_created() -> None:
    outcomes = await install(Served())
    assert outcomes["namespace/everynode-system"] is StepOutcome.CREATED
    assert outcomes["clusterrole.rbac.authorization.k8s.io/everynode"] is StepOutcome.CREATED
    assert outcomes["deployment.apps/everynode"] is StepOutcome.CREATED


async def test_planning_changes_nothing() -> None:
    served = Served()
    await plan(served.client, install_objects(ALL), NOTHING)
    assert served.written == []


async def test_installing_again_changes_nothing() -> None:
    served = Served()
    await install(served)
    again = await install(served)
    assert {*again.values()} == {StepOutcome.UNCHANGED}


async def test_another_image_configures_the_deployment_alone() -> None:
    served = Served()
    await install(served)
    again = await install(served, InstallOptions(image="everynode:2"))
    changed = [name for name, outcome in again.items() if outcome is StepOutcome.CONFIGURED]
    assert changed == ["deployment.apps/everynode"]


async def test_a_status_written_meanwhile_is_no_change_of_ours() -> None:
    served = Served()
    await install(served)
    steps = await plan(served.client, install_objects(ALL), NOTHING)
    await served.ask("PATCH", f"{DEPLOYMENT}/status", {"status": {"replicas": 2}})
    assert await apply_step(served.client, steps[-1], NOTHING) is StepOutcome.UNCHANGED


async def test_kinds_that_a_small_server_lacks_are_skipped() -> None:
    outcomes = await install(Served(lacking="networking.k8s.io"))
    assert outcomes["networkpolicy.networking.k8s.io/everynode"] is StepOutcome.SKIPPED


async def test_an_existing_namespace_is_used_and_not_changed() -> None:
    served = Served()
    await served.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "agents"}})
    outcomes = await install(served, InstallOptions(namespace="agents"))
    namespace = await served.ask("GET", "/api/v1/namespaces/agents")
    assert outcomes["namespace/agents"] is StepOutcome.LEFT
    assert "pod-security.kubernetes.io/enforce" not in namespace["metadata"]["labels"]


async def test_a_namespace_that_is_being_deleted_is_waited_for() -> None:
    served = Served()
    await install(served)
    await served.ask("DELETE", "/api/v1/namespaces/everynode-system")
    with pytest.raises(UserError, match="namespace everynode-system is being deleted"):
        await install(served)


async def test_a_field_that_others_changed_is_not_taken_without_force() -> None:
    served = Served()
    await install(served)
    await served.ask("PATCH", DEPLOYMENT, {"spec": {"replicas": 5}})
    with pytest.raises(UserError, match=r"changed by others.*\.spec\.replicas.*--force"):
        await install(served)
    await install(served, consent=Consent(force=True))
    assert (await served.ask("GET", DEPLOYMENT))["spec"]["replicas"] == 2


async def test_a_second_installation_elsewhere_is_refused() -> None:
    served = Served()
    await install(served)
    with pytest.raises(UserError, match="installed in namespace everynode-system already"):
        await install(served, InstallOptions(namespace="elsewhere"))


async def test_kruises_crd_is_refused_and_nothing_is_written() -> None:
    served = Served()
    await served.have_kruises_crd()
    with pytest.raises(UserError, match=r"kruise-system/kruise-webhook-service.*--adopt-crd"):
        await install(served)
    assert served.written == []


async def test_kruises_crd_is_replaced_by_consent() -> None:
    served = Served()
    await served.have_kruises_crd()
    outcomes = await install(served, consent=Consent(adopt_crd=True))
    crd = await served.ask("GET", OUR_CRD)
    assert outcomes[f"customresourcedefinition.apiextensions.k8s.io/{crd['metadata']['name']}"] is (
        StepOutcome.CONFIGURED
    )
    assert crd["spec"]["conversion"] == {"strategy": "None"}


async def test_all_missing_permissions_are_named_at_once() -> None:
    served = Served()
    wanted = [each for each in install_objects(InstallOptions()) if "ClusterRole" in each["kind"]][
        :2
    ]
    refusals = [
        failure(
            403,
            "Forbidden",
            f'{each["kind"]} "everynode" is forbidden: User "eve" cannot get resource '
            f'"{each["kind"].lower()}s" in API group "rbac.authorization.k8s.io" at the cluster '
            "scope",
        )
        for each in wanted
    ]
    client = Client(ScriptedTransport(*refusals), served.clock)
    with pytest.raises(UserError) as refused:
        await plan(client, wanted, NOTHING)
    assert str(refused.value).startswith(
        "you lack the permission to get clusterroles.rbac.authorization.k8s.io, "
        "get clusterrolebindings.rbac.authorization.k8s.io;"
    )


async def test_names_that_the_server_does_not_accept_are_an_error() -> None:
    body = (
        b'{"metadata": {}, "status": {"conditions": [{"type": "NamesAccepted", "status": "False",'
        b' "message": "\\"ads\\" is already in use"}]}}'
    )
    served = Served()
    client = Client(ScriptedTransport(Response(200, body)), served.clock)
    with pytest.raises(UserError, match='"ads" is already in use'):
        await wait_until_established(client, served.clock, "daemonsets.apps.kruise.io")


async def test_a_crd_that_is_never_established_is_an_error() -> None:
    served = Served()
    answers = [Response(200, b'{"metadata": {}, "status": {"conditions": null}}')] * 400
    client = Client(ScriptedTransport(*answers), served.clock)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(client, served))
        await served.clock.advance(61)
        assert "not established within 60 seconds" in await task


async def _outcome(client: Client, served: Served) -> str:
    try:
        await wait_until_established(client, served.clock, "daemonsets.apps.kruise.io")
    except UserError as error:
        return str(error)
    return ""
