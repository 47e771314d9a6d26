from __future__ import annotations

import pytest

from everynode.kube.resources import ADVANCED, CRDS, DAEMONSETS, NODES, PODS, Resource


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "subresource", "path"),
    [
        (PODS, "", "", "", "/api/v1/pods"),
        (PODS, "n", "", "", "/api/v1/namespaces/n/pods"),
        (PODS, "n", "p", "resize", "/api/v1/namespaces/n/pods/p/resize"),
        (NODES, "", "x", "", "/api/v1/nodes/x"),
        (NODES, "n", "x", "status", "/api/v1/nodes/x/status"),
        (DAEMONSETS, "n", "d", "status", "/apis/apps/v1/namespaces/n/daemonsets/d/status"),
        (ADVANCED, "", "", "", "/apis/apps.kruise.io/v1beta1/daemonsets"),
        (CRDS, "", "c", "", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/c"),
    ],
)
def test_paths(resource: Resource, namespace: str, name: str, subresource: str, path: str) -> None:
    assert resource.path(namespace, name, subresource=subresource) == path


def test_an_object_of_a_namespaced_kind_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match=r"daemonsets\.apps 'd': a namespace is needed"):
        DAEMONSETS.path("", "d")


def test_names_as_people_write_them() -> None:
    assert (PODS.full_name, PODS.api_version) == ("pods", "v1")
    assert (ADVANCED.full_name, ADVANCED.api_version) == (
        "daemonsets.apps.kruise.io",
        "apps.kruise.io/v1beta1",
    )
