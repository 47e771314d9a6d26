from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from everynode.errors import UserError
from everynode.install import InstallOptions, install_objects
from everynode.install.takeover import helm_release, is_kruise_crd, take_over
from everynode.kube.client import Client
from everynode.kube.requests import Request
from tests.support.install_cluster import KRUISES_CRD, OUR_CRD, Served

OURS = install_objects(InstallOptions())[0]
DAEMONSETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets"
DAEMONSET = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        },
    },
}


def test_a_crd_with_a_webhook_is_kruises() -> None:
    assert is_kruise_crd(KRUISES_CRD)


def test_an_old_crd_without_a_webhook_is_kruises_too() -> None:
    old = {**KRUISES_CRD, "spec": {**KRUISES_CRD["spec"], "conversion": {"strategy": "None"}}}
    assert is_kruise_crd(old)


def test_our_crd_is_not_kruises() -> None:
    assert not is_kruise_crd(OURS)


def test_the_helm_release_that_brought_a_crd_is_known() -> None:
    assert helm_release(KRUISES_CRD) == "kruise"
    assert helm_release(OURS) == ""


async def test_the_definition_is_replaced_and_the_daemonsets_stay() -> None:
    served = Served()
    await served.have_kruises_crd()
    await served.ask("POST", DAEMONSETS, DAEMONSET)
    await take_over(served.client, await served.ask("GET", OUR_CRD), OURS)
    after = await served.ask("GET", OUR_CRD)
    assert after["spec"]["conversion"] == {"strategy": "None"}
    assert after["spec"]["versions"] == OURS["spec"]["versions"]
    assert not is_kruise_crd(after)
    assert (await served.ask("GET", f"{DAEMONSETS}/agent"))["spec"]["template"]


async def test_a_definition_that_changed_meanwhile_is_left_alone() -> None:
    served = Served()
    await served.have_kruises_crd()
    seen = await served.ask("GET", OUR_CRD)
    await served.ask("PATCH", OUR_CRD, {"metadata": {"labels": {"changed": "true"}}})
    with pytest.raises(UserError, match="was changed by another client; try again"):
        await take_over(served.client, seen, OURS)
    assert is_kruise_crd(await served.ask("GET", OUR_CRD))


class StatusWriter(Client):
    """A client of a server that writes the status of the definition before each of our writes."""

    def __init__(self, served: Served, times: int) -> None:
        super().__init__(served.client.transport, served.clock)
        self.served, self.times = served, times

    async def write(self, request: Request, decode: Callable[[bytes], Any]) -> Any:
        if self.times:
            self.times -= 1
            condition = {"type": f"Written{self.times}", "status": "True"}
            status = {"status": {"conditions": [condition]}}
            await self.served.ask("PATCH", f"{OUR_CRD}/status", status)
        return await super().write(request, decode)


async def test_a_status_that_the_server_writes_meanwhile_stops_nothing() -> None:
    served = Served()
    await served.have_kruises_crd()
    client = StatusWriter(served, times=4)
    await take_over(client, await served.ask("GET", OUR_CRD), OURS)
    after = await served.ask("GET", OUR_CRD)
    assert client.times == 0
    assert not is_kruise_crd(after)
    owners = after["metadata"]["managedFields"]
    assert {owner.get("subresource") for owner in owners} == {"status"}
