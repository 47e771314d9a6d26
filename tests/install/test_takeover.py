from __future__ import annotations

import pytest

from everynode.install import InstallOptions, install_objects
from everynode.install.takeover import helm_release, is_kruise_crd, take_over
from everynode.kube.errors import Conflict
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
    with pytest.raises(Conflict):
        await take_over(served.client, seen, OURS)
    assert is_kruise_crd(await served.ask("GET", OUR_CRD))
