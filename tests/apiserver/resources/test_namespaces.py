from __future__ import annotations

from tests.support.api_client import CORE, Cluster

SPACES = f"{CORE}/namespaces"


async def test_new_namespace_is_active_and_has_an_account_for_its_pods(cluster: Cluster) -> None:
    made = await cluster.create(SPACES, {"metadata": {"name": "team"}})
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert (await cluster.get(f"{SPACES}/team/serviceaccounts/default")).status == 200


async def test_namespace_ends_when_its_finalizer_is_taken_away(cluster: Cluster) -> None:
    await cluster.create(SPACES, {"metadata": {"name": "team"}})
    ending = await cluster.delete(f"{SPACES}/team")
    assert ending.body["status"]["phase"] == "Terminating"
    assert "deletionTimestamp" in ending.body["metadata"]
    finalized = {"metadata": {"name": "team"}, "spec": {"finalizers": []}}
    assert (await cluster.put(f"{SPACES}/team/finalize", finalized)).status == 200
    assert (await cluster.get(f"{SPACES}/team")).status == 404


async def test_finalizer_and_label_cannot_be_written_away(cluster: Cluster) -> None:
    await cluster.create(SPACES, {"metadata": {"name": "team"}})
    answer = await cluster.put(f"{SPACES}/team", {"metadata": {"name": "team"}})
    assert answer.body["spec"] == {"finalizers": ["kubernetes"]}
    assert answer.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert answer.body["status"] == {"phase": "Active"}


async def test_name_of_a_namespace_has_no_dots(cluster: Cluster) -> None:
    answer = await cluster.post(SPACES, {"metadata": {"name": "a.b"}})
    assert answer.status == 422
    assert "must not contain dots" in answer.message


async def test_namespaces_of_the_cluster_itself_stay(cluster: Cluster) -> None:
    answer = await cluster.delete(f"{SPACES}/kube-system")
    assert (answer.status, answer.message) == (
        403,
        'namespaces "kube-system" is forbidden: this namespace may not be deleted',
    )
