from __future__ import annotations

from tests.support.api_client import CORE, MAPS, Cluster, config_map

SECRETS = f"{CORE}/namespaces/default/secrets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_plain_text_of_a_secret_is_stored_in_base64(cluster: Cluster) -> None:
    body = {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    made = await cluster.create(SECRETS, body)
    assert made["data"] == {"a": "Yg==", "c": "ZA=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


async def test_type_of_a_secret_stays(cluster: Cluster) -> None:
    await cluster.create(SECRETS, {"metadata": {"name": "s"}})
    assert (await cluster.patch(f"{SECRETS}/s", {"type": "other"})).status == 422


async def test_what_is_immutable_stays(cluster: Cluster) -> None:
    await cluster.create(MAPS, {**config_map("a", x="1"), "immutable": True})
    for change in ({"data": {"x": "2"}}, {"immutable": None}):
        answer = await cluster.patch(f"{MAPS}/a", change)
        assert answer.status == 422
        assert "field is immutable when `immutable` is set" in answer.message
    assert (await cluster.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "y"}}})).status == 200


async def test_roles_may_have_colons_in_their_names(cluster: Cluster) -> None:
    assert (await cluster.post(f"{RBAC}/clusterroles", {"metadata": {"name": "a:b"}})).status == 201
    assert (await cluster.post(f"{RBAC}/clusterroles", {"metadata": {"name": "a/b"}})).status == 422


async def test_binding_names_its_group_and_keeps_its_role(cluster: Cluster) -> None:
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "x"},
        "subjects": [
            {"kind": "User", "name": "u"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
        ],
    }
    made = await cluster.create(f"{RBAC}/clusterrolebindings", body)
    assert made["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [s.get("apiGroup") for s in made["subjects"]] == ["rbac.authorization.k8s.io", None]
    change = {"roleRef": {"name": "y"}}
    answer = await cluster.patch(f"{RBAC}/clusterrolebindings/b", change)
    assert "field is immutable" in answer.message
