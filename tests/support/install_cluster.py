"""Embedded cluster for installation tests; it records all writes that were not dry runs."""

from __future__ import annotations

import json
from typing import Any

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.support.scripted_server import ManualClock

Object = dict[str, Any]

KRUISES_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "daemonsets.apps.kruise.io",
        "annotations": {
            "controller-gen.kubebuilder.io/version": "v0.16.5",
            "meta.helm.sh/release-name": "kruise",
        },
    },
    "spec": {
        "group": "apps.kruise.io",
        "names": {
            "kind": "DaemonSet",
            "listKind": "DaemonSetList",
            "plural": "daemonsets",
            "singular": "daemonset",
            "shortNames": ["daemon", "ads"],
        },
        "scope": "Namespaced",
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": {
                    "service": {
                        "namespace": "kruise-system",
                        "name": "kruise-webhook-service",
                        "path": "/convert",
                    }
                },
            },
        },
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1beta1",
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
            for name in ("v1alpha1", "v1beta1")
        ],
    },
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OUR_CRD = f"{CRDS}/daemonsets.apps.kruise.io"


class Served:
    """A cluster, a client of it, and the writes that were not dry runs."""

    def __init__(self, *, lacking: str = "nothing") -> None:
        self._lacking = lacking  # an API group that the cluster does not serve
        self.clock = ManualClock()
        self._inner = LocalTransport(Api(clock=self.clock))
        self.client = Client(self, self.clock)
        self.written: list[str] = []

    async def send(self, request: Request) -> Response:
        question = request.path.endswith("reviews")
        if request.method != "GET" and ("dryRun", "All") not in request.query and not question:
            self.written.append(f"{request.method} {request.path}")
        if request.path.startswith(f"/apis/{self._lacking}/"):
            return Response(404, b"404 page not found", {"content-type": "text/plain"})
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def close(self) -> None:
        await self._inner.close()

    async def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send one request as another client."""
        data = json.dumps(body).encode() if body else b""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        query = () if method == "GET" else (("fieldManager", "another"),)
        request = Request(method, path, query, body=data, content_type=kind)
        answer = await self._inner.send(request)
        assert answer.ok, answer.body
        found: Object = json.loads(answer.body)
        return found

    async def have_kruises_crd(self) -> None:
        """Install Kruise's CRD, as on a cluster that already has Kruise."""
        await self.ask("DELETE", OUR_CRD)
        await self.ask("POST", CRDS, KRUISES_CRD)
