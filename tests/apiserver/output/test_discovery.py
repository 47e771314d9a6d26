from __future__ import annotations

from tests.support.api_client import DEFINITIONS, Cluster, definition

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


async def test_everything_is_discovered_at_once(cluster: Cluster) -> None:
    core = await cluster.get("/api", accept=AGGREGATED)
    kinds = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert core.headers["content-type"] == kinds
    [group] = core.body["items"]
    assert group["metadata"] == {}
    [version] = group["versions"]
    pods = next(r for r in version["resources"] if r["resource"] == "pods")
    assert (pods["scope"], pods["singularResource"], pods["shortNames"]) == (
        "Namespaced",
        "pod",
        ["po"],
    )
    evict = next(s for s in pods["subresources"] if s["subresource"] == "eviction")
    assert evict["responseKind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    others = await cluster.get("/apis", accept=AGGREGATED)
    names = [item["metadata"]["name"] for item in others.body["items"]]
    assert {"apps", "apps.kruise.io", "coordination.k8s.io"} <= {*names}
    assert "" not in names


async def test_old_clients_discover_step_by_step(cluster: Cluster) -> None:
    assert (await cluster.read("/api"))["versions"] == ["v1"]
    groups = (await cluster.read("/apis"))["groups"]
    apps = next(group for group in groups if group["name"] == "apps")
    assert apps["preferredVersion"]["groupVersion"] == "apps/v1"
    resources = (await cluster.read("/api/v1"))["resources"]
    evict = next(entry for entry in resources if entry["name"] == "pods/eviction")
    assert (evict["kind"], evict["group"], evict["version"]) == ("Eviction", "policy", "v1")
    sets = (await cluster.read("/apis/apps/v1"))["resources"]
    names = [entry["name"] for entry in sets]
    assert "daemonsets/status" in names
    assert "daemonsets/scale" not in names


async def test_both_versions_of_the_advanced_daemonset_are_served(cluster: Cluster) -> None:
    group = await cluster.read("/apis/apps.kruise.io")
    assert [v["version"] for v in group["versions"]] == ["v1beta1", "v1alpha1"]


async def test_custom_kinds_are_discovered_and_described(cluster: Cluster) -> None:
    before = await cluster.read("/openapi/v3")
    await cluster.create(DEFINITIONS, definition())
    assert (await cluster.read("/apis/example.test/v1"))["resources"][0]["shortNames"] == ["wd"]
    after = await cluster.read("/openapi/v3")
    assert {*after["paths"]} - {*before["paths"]} == {"apis/example.test/v1"}
    document = await cluster.read("/openapi/v3/apis/example.test/v1")
    assert "test.example.v1.Widget" in document["components"]["schemas"]


async def test_version_is_one_that_clients_understand(cluster: Cluster) -> None:
    version = await cluster.read("/version")
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"].startswith("v1.37.")


async def test_old_openapi_can_be_read_and_is_empty(cluster: Cluster) -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = await cluster.get("/openapi/v2", accept=protobuf)
    assert answer.status == 200
    assert (await cluster.read("/openapi/v2"))["swagger"] == "2.0"


async def test_unknown_addresses_are_answered_as_the_real_server_does(cluster: Cluster) -> None:
    for path in ("/nope", "/apis/nope", "/apis/nope/v1", "/openapi/v3/apis/nope/v1"):
        answer = await cluster.get(path)
        assert (answer.status, answer.raw) == (404, b"404 page not found\n")
    assert "/apis/apps/v1" in (await cluster.read("/"))["paths"]
