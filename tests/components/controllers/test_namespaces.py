"""Deletion of namespaces."""

from __future__ import annotations

from everynode.components.kubelet.image_config import CONFIG_MAPS
from everynode.kube import verbs
from everynode.kube.resources import NAMESPACES, PODS
from tests.support.components_cluster import pod_body, running, virtual


@virtual
async def test_a_namespace_ends_after_everything_in_it() -> None:
    async with running() as world:
        await world.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        await world.create(PODS, pod_body("one", node="node-0001"), "team")
        await world.create(CONFIG_MAPS, {"metadata": {"name": "settings"}}, "team")
        await world.pass_time(5)
        await world.ask(verbs.delete(NAMESPACES, "team"))
        await world.pass_time(0.3)
        left = [each["metadata"]["name"] for each in await world.all(CONFIG_MAPS)]
        assert "settings" in left
        await world.pass_time(5)
        assert await world.pod_names() == []
        left = [each["metadata"]["name"] for each in await world.all(NAMESPACES)]
        assert "team" not in left


@virtual
async def test_a_namespace_waits_for_what_cannot_go_yet() -> None:
    async with running() as world:
        await world.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        held = {"metadata": {"name": "held", "finalizers": ["example.io/hold"]}}
        await world.create(CONFIG_MAPS, held, "team")
        await world.ask(verbs.delete(NAMESPACES, "team"))
        await world.pass_time(20)
        team = await world.ask(verbs.get(NAMESPACES, "team"))
        assert team["status"]["phase"] == "Terminating"
        freed = {"metadata": {"finalizers": None}}
        await world.ask(verbs.patch(CONFIG_MAPS, "held", freed, namespace="team"))
        await world.pass_time(2)
        left = [each["metadata"]["name"] for each in await world.all(NAMESPACES)]
        assert "team" not in left


@virtual
async def test_a_terminating_namespace_reports_what_it_waits_for() -> None:
    async with running() as world:
        await world.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        held = {"metadata": {"name": "held", "finalizers": ["example.io/hold"]}}
        await world.create(CONFIG_MAPS, held, "team")
        await world.ask(verbs.delete(NAMESPACES, "team"))
        await world.pass_time(2)
        first = await world.ask(verbs.get(NAMESPACES, "team"))
        told = {each["type"]: each for each in first["status"]["conditions"]}
        assert told["NamespaceDeletionContentFailure"]["status"] == "False"
        remaining = told["NamespaceContentRemaining"]["message"]
        assert remaining == "Some resources are remaining: configmaps. has 1 resource instances"
        assert "example.io/hold in 1" in told["NamespaceFinalizersRemaining"]["message"]
        await world.pass_time(20)
        later = await world.ask(verbs.get(NAMESPACES, "team"))
        assert later["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@virtual
async def test_nothing_else_of_a_namespace_goes_before_its_pods() -> None:
    async with running() as world:
        await world.ask(verbs.create(NAMESPACES, {"metadata": {"name": "team"}}))
        body = pod_body("one", node="node-0001")
        body["metadata"]["finalizers"] = ["example.io/hold"]
        await world.create(PODS, body, "team")
        await world.create(CONFIG_MAPS, {"metadata": {"name": "settings"}}, "team")
        await world.ask(verbs.delete(NAMESPACES, "team"))
        await world.pass_time(60)
        left = [each["metadata"]["name"] for each in await world.all(CONFIG_MAPS)]
        assert "settings" in left
        team = await world.ask(verbs.get(NAMESPACES, "team"))
        assert len(team["status"]["conditions"]) == 5
