from __future__ import annotations

from typing import Any

import pytest

from everynode.api.daemonset import Flavour
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.cli.access.cluster import Cluster
from everynode.cli.access.daemonset_names import (
    DaemonSetName,
    find_daemonset,
    full_name,
    parse_name,
)
from everynode.clock import SystemClock
from everynode.errors import UsageError, UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, CRDS, DAEMONSETS, Resource
from everynode.kube.transport import Transport
from tests.support.transports import Access, Permitted


def cluster(transport: Transport) -> Cluster:
    clock = SystemClock()
    return Cluster(Client(transport, clock), clock, "default")


async def served(*sets: tuple[Resource, str]) -> LocalTransport:
    """An API server that has these DaemonSets."""
    clock = SystemClock()
    transport = LocalTransport(Api(clock=clock))
    for resource, name in sets:
        body = manifest(resource, name)
        await Client(transport, clock).write(
            verbs.create(resource, body, namespace="default"), bytes
        )
    return transport


def manifest(resource: Resource, name: str) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": resource.api_version,
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
        },
    }


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("agent", None),
        ("ads/agent", Flavour.ADVANCED),
        ("ADS/agent", Flavour.ADVANCED),
        ("daemonset.apps.kruise.io/agent", Flavour.ADVANCED),
        ("daemonsets.v1beta1.apps.kruise.io/agent", Flavour.ADVANCED),
        ("ds/agent", Flavour.NATIVE),
        ("daemonset/agent", Flavour.NATIVE),
        ("daemonsets.apps/agent", Flavour.NATIVE),
        ("daemonset.v1.apps/agent", Flavour.NATIVE),
    ],
)
def test_a_name_may_have_the_prefixes_that_kubectl_takes(
    text: str, flavour: Flavour | None
) -> None:
    assert parse_name(text) == DaemonSetName("agent", flavour)


@pytest.mark.parametrize("text", ["deploy/agent", "a/b/c", "/agent", "", "ads/", "Agent", "a b"])
def test_what_cannot_be_a_name_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        parse_name(text)


async def test_a_bare_name_finds_either_kind() -> None:
    here = cluster(await served((ADVANCED, "log"), (DAEMONSETS, "net")))
    log, net = await find_daemonset(here, "log"), await find_daemonset(here, "net")
    assert (log.short_name, net.short_name) == ("ads/log", "ds/net")
    assert full_name(log.ds) == "daemonset.apps.kruise.io/log"
    assert b'"image"' in log.raw


async def test_a_name_of_both_kinds_needs_a_prefix() -> None:
    here = cluster(await served((ADVANCED, "log"), (DAEMONSETS, "log")))
    with pytest.raises(UsageError, match=r"two DaemonSets log: type ads/log or ds/log"):
        await find_daemonset(here, "log")
    assert (await find_daemonset(here, "ds/log")).ds.flavour is Flavour.NATIVE


async def test_a_name_that_is_missing_is_named_with_what_was_probably_meant() -> None:
    here = cluster(await served((DAEMONSETS, "net")))
    with pytest.raises(UserError, match=r"no DaemonSet agent, of neither kind, in namespace"):
        await find_daemonset(here, "agent")
    with pytest.raises(UserError, match=r"there is no ads/net in .* but there is ds/net"):
        await find_daemonset(here, "ads/net")


async def test_without_the_crd_only_native_sets_are_found() -> None:
    transport = await served((DAEMONSETS, "net"))
    here = cluster(transport)
    await here.client.write(verbs.delete(CRDS, f"{ADVANCED.plural}.{ADVANCED.group}"), bytes)
    assert (await find_daemonset(here, "net")).ds.flavour is Flavour.NATIVE
    with pytest.raises(UserError, match=r"CRD is missing; run `everynode install`"):
        await find_daemonset(here, "ads/log")


async def test_a_missing_right_is_named_unless_the_other_kind_has_the_name() -> None:
    transport = await served((ADVANCED, "log"), (DAEMONSETS, "net"))
    here = cluster(Permitted(transport, {Access("apps.kruise.io", "daemonsets", "get")}))
    assert (await find_daemonset(here, "log")).short_name == "ads/log"
    with pytest.raises(
        UserError, match=r"permission to get daemonsets\.apps .*in namespace default"
    ):
        await find_daemonset(here, "net")
