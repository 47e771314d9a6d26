"""The API server handles the controller's requests at the levels that were made for controllers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from everynode.install.flow_schemas import flow_schemas
from everynode.kube.requests import APPLY_PATCH
from everynode.localkube.control_plane import ControlPlane
from tests.support.real_server import RealApiServer

NAMESPACE = "everynode-flows"
SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/everynode"
HEADER = "X-Kubernetes-PF-FlowSchema-UID"


def test_leases_have_a_level_of_their_own_and_come_first() -> None:
    lease, rest = (each["spec"] for each in flow_schemas("x"))
    assert lease["priorityLevelConfiguration"]["name"] == "leader-election"
    assert rest["priorityLevelConfiguration"]["name"] == "workload-high"
    assert lease["matchingPrecedence"] < rest["matchingPrecedence"] < 9000
    # We renew the Lease by a patch, which the rules that come with a cluster do not name.
    assert "patch" in lease["rules"][0]["resourceRules"][0]["verbs"]


@pytest.mark.kubernetes
def test_a_real_server_uses_them_for_the_service_account(api_server: ControlPlane) -> None:
    admin = RealApiServer(api_server)
    uids = {}
    for schema in flow_schemas(NAMESPACE):
        path = f"{SCHEMAS}/{schema['metadata']['name']}?fieldManager=test"
        made = admin.ask("PATCH", path, json.dumps(schema), APPLY_PATCH)
        assert made.code == 201
        uids[schema["metadata"]["name"]] = made.body["metadata"]["uid"]
    expected = {LEASE: "everynode-leader-election", "/api/v1/nodes": "everynode"}
    try:
        for path, name in expected.items():
            # The server takes new schemas in within moments of their creation.
            while flow_of(api_server, path) not in uids.values():
                pass
            assert flow_of(api_server, path) == uids[name]
    finally:
        for name in uids:
            admin.ask("DELETE", f"{SCHEMAS}/{name}")


def flow_of(plane: ControlPlane, path: str) -> str:
    """Return the uid of the FlowSchema by which a request of the service account is handled."""
    request = urllib.request.Request(
        plane.url + path,
        headers={
            "Authorization": f"Bearer {plane.token}",
            "Impersonate-User": f"system:serviceaccount:{NAMESPACE}:everynode",
            "Impersonate-Group": "system:serviceaccounts",
        },
    )
    try:
        with urllib.request.urlopen(request, context=plane.ssl_context(), timeout=120) as answer:
            return str(answer.headers[HEADER])
    except urllib.error.HTTPError as refused:  # no rights, but the header
        with refused:
            return str(refused.headers[HEADER])
