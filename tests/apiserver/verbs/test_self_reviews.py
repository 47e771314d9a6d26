from __future__ import annotations

from tests.support.api_client import Cluster

AUTHORIZATION = "/apis/authorization.k8s.io/v1"


async def test_the_admin_token_allows_everything(cluster: Cluster) -> None:
    spec = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    made = await cluster.create(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": spec})
    assert made["status"]["allowed"] is True
    assert made["spec"] == spec
    rules = await cluster.create(
        f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
    )
    assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
    assert rules["status"]["incomplete"] is False


async def test_a_self_subject_review_returns_the_user(cluster: Cluster) -> None:
    made = await cluster.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert made["status"]["userInfo"]["username"] == "everynode-admin"


async def test_questions_are_not_stored(cluster: Cluster) -> None:
    before = cluster.api.store.version
    await cluster.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert cluster.api.store.version == before


async def test_there_is_no_table_of_a_review(cluster: Cluster) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert (await cluster.ask("POST", path, {}, accept=table)).status == 406
    answer = await cluster.ask("POST", path, {}, accept=f"{table},application/json")
    assert answer.body["kind"] == "SelfSubjectReview"
