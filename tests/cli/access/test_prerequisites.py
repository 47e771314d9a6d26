"""Prerequisites: messages about a cluster that is not ready for the controller."""

from __future__ import annotations

import json

import pytest

from everynode.cli.access.prerequisites import Prerequisites, check_prerequisites
from everynode.controller.run import ControllerOptions
from everynode.errors import UserError
from everynode.kube.requests import Request, Response
from tests.support.install_cluster import OUR_CRD, Served

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ALL = Prerequisites(controller=ControllerOptions(native=True), lease_namespace="default")


class Strict(Served):
    """A cluster whose user may not do everything."""

    def __init__(self, *, verbs: tuple[str, ...], mute: bool = False) -> None:
        super().__init__()
        self._verbs = verbs
        self._mute = mute  # it does not even answer what is allowed

    async def send(self, request: Request) -> Response:
        if request.path != REVIEWS:
            return await super().send(request)
        if self._mute:
            return Response(403, b'{"kind": "Status", "reason": "Forbidden", "code": 403}', {})
        verb = json.loads(request.body)["spec"]["resourceAttributes"]["verb"]
        answer = {"status": {"allowed": verb in self._verbs}}
        return Response(201, json.dumps(answer).encode(), {})


async def refused(served: Served, needs: Prerequisites = ALL) -> str:
    with pytest.raises(UserError) as caught:
        await check_prerequisites(served.client, needs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_cluster_that_has_all_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    served = Served()
    await check_prerequisites(served.client, ALL)
    assert served.written == []
    assert capsys.readouterr().err == ""


async def test_without_the_crd_one_is_told_to_install_it() -> None:
    served = Served()
    await served.ask("DELETE", OUR_CRD)
    assert "run `everynode install` first" in await refused(served)
    native = Prerequisites(
        controller=ControllerOptions(native=True, advanced=False), lease_namespace="default"
    )
    await check_prerequisites(served.client, native)


async def test_the_namespace_of_the_lease_must_exist() -> None:
    needs = Prerequisites(controller=ControllerOptions(), lease_namespace="everynode-system")
    said = await refused(Served(), needs)
    assert said.startswith("namespace everynode-system for the leader's Lease does not exist: run")
    await check_prerequisites(
        Served().client, Prerequisites(controller=ControllerOptions(), lease_namespace="")
    )


async def test_a_namespace_that_is_to_be_served_may_come_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    needs = Prerequisites(controller=ControllerOptions(namespace="web"), lease_namespace="")
    await check_prerequisites(Served().client, needs)
    assert capsys.readouterr().err == "warning: there is no namespace web yet\n"


async def test_what_is_not_allowed_is_named_by_resource() -> None:
    said = await refused(Strict(verbs=("get", "list", "watch")))
    assert said.startswith(
        "you lack the permission to patch daemonsets.apps.kruise.io/status, "
        "update daemonsets.apps.kruise.io/finalizers, create/patch/delete pods, "
    )
    assert "patch/create leases.coordination.k8s.io in namespace default" in said


async def test_a_controller_of_one_namespace_needs_its_permissions_only_there() -> None:
    needs = Prerequisites(controller=ControllerOptions(namespace="web"), lease_namespace="")
    said = await refused(Strict(verbs=()), needs)
    assert "get/list/watch/create/patch/delete pods in namespace web" in said
    assert "list/watch nodes," in said
    assert "daemonsets.apps/" not in said


async def test_where_one_may_not_ask_the_controller_finds_out_itself() -> None:
    await check_prerequisites(Strict(verbs=(), mute=True).client, ALL)
