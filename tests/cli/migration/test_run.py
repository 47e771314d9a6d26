"""A migration that is killed at every write, before and after it: the pods stay the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from everynode.api.daemonset import Flavour
from everynode.cli import migrate
from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.cli.migration.plan import OTHER, is_observed
from everynode.cli.migration.run import Migration
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.resources import ADVANCED, DAEMONSETS, PODS, Resource
from everynode.kube.transport import Stream, Transport
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed
from tests.support.stage import daemonset

Object = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
RESOURCES = {Flavour.NATIVE: DAEMONSETS, Flavour.ADVANCED: ADVANCED}
NODES = 2
# Probe created and deleted, record stored, source deleted, a probe of either kind created and
# deleted, a pod and a revision as well, target created, record deleted.
WRITES = 14


class KilledError(Exception):
    """The process ends here."""


class DeadlyTransport:
    """Ends the process at a write: before it is sent, or before its answer is seen."""

    def __init__(self, inner: Transport, at: int, *, sent: bool) -> None:
        self._inner = inner
        self._left = at
        self._sent = sent

    async def send(self, request: Request) -> Response:
        counted = verbs.is_write(request) and not request.path.endswith("reviews")
        # How often the controller is asked to look again depends on how quick it is.
        if request.method == "PATCH" and request.path.endswith("-migration-probe"):
            return await self._inner.send(request)
        if not counted or b"dryRun" in request.body or ("dryRun", "All") in request.query:
            return await self._inner.send(request)
        self._left -= 1
        if self._left == 0:
            if self._sent:
                await self._inner.send(request)
            raise KilledError
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    arguments = ("--nodes", str(NODES), "--speed", "50")
    with started(tmp_path_factory.mktemp("migration"), *arguments) as running:
        native = daemonset("agent", api_version="apps/v1")
        ask(running, verbs.create(DAEMONSETS, native, namespace="default"))
        yield running


async def settled(cluster: Cluster, flavour: Flavour) -> set[str]:
    """Wait until the DaemonSet is complete; return the uids of its pods."""
    async with asyncio.timeout(120):
        while True:
            request = verbs.get(RESOURCES[flavour], "agent", namespace="default")
            live = await cluster.client.read(request, _decode)
            status = live.get("status", {})
            done = status.get("numberAvailable") == status.get("updatedNumberScheduled") == NODES
            if is_observed(live) and done and "True" in _complete(live):
                break
            await asyncio.sleep(0.05)
    listed = await cluster.client.read(verbs.list_page(PODS), _decode)
    return {each["metadata"]["uid"] for each in listed["items"]}


def _complete(live: Object) -> list[str]:
    conditions = live["status"].get("conditions") or ()
    return [each["status"] for each in conditions if each["type"] == "Complete"]


def _decode(body: bytes) -> Object:
    found: Object = json.loads(body)
    return found


async def migrate_and_die(cluster: Cluster, flavour: Flavour, at: int, *, sent: bool) -> bool:
    """Return whether the process was killed before it was done."""
    transport = DeadlyTransport(cluster.client.transport, at, sent=sent)
    dying = replace(cluster, client=Client(transport, cluster.clock))
    try:
        await Migration(dying, "agent", flavour).run()
    except KilledError:
        return True
    return False


async def leftovers(cluster: Cluster, flavour: Flavour) -> list[str]:
    """Return what should be gone: the source, the probe, the record."""
    found = []
    for resource in (DAEMONSETS, ADVANCED, CONFIG_MAPS):
        listed = await cluster.client.read(verbs.list_page(resource), _decode)
        found += [f"{resource.group}/{each['metadata']['name']}" for each in listed["items"]]
    found.remove(f"{RESOURCES[OTHER[flavour]].group}/agent")
    return [each for each in found if each != "/kube-root-ca.crt"]


@pytest.mark.timeout(300)
def test_a_migration_that_is_killed_at_any_write_goes_on(up: Up) -> None:
    async def there_and_back() -> int:
        flavour, kills = Flavour.NATIVE, 0
        async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:
            pods = await settled(cluster, flavour)
            for at in range(1, 20):
                for sent in (False, True):
                    killed = await migrate_and_die(cluster, flavour, at, sent=sent)
                    if not killed:
                        return kills
                    kills += 1
                    if (at, sent) == (WRITES, True):  # all was done, and the same command says so
                        with pytest.raises(UserError, match="has the kind that you want already"):
                            await migrate_and_die(cluster, flavour, 0, sent=False)
                    else:
                        assert not await migrate_and_die(cluster, flavour, 0, sent=False)
                    assert await leftovers(cluster, flavour) == []
                    flavour = OTHER[flavour]
                    assert await settled(cluster, flavour) == pods
        raise AssertionError("more writes than expected")

    assert asyncio.run(there_and_back()) == 2 * WRITES


def test_a_bare_name_and_a_missing_one_are_refused(up: Up) -> None:
    assert "give ds/agent to make it" in str(typed(migrate.command, up, "agent").exception)
    assert "there is no ds/none" in str(typed(migrate.command, up, "ds/none").exception)
