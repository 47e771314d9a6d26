"""Resources: the API kinds that Everynode uses, with group, version and path."""

from __future__ import annotations

from typing import Final

import msgspec


class Resource(msgspec.Struct, frozen=True, gc=False):
    """A resource of the API: group, version, plural and kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """The name for kubectl and in RBAC errors: `daemonsets.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", *, subresource: str = "") -> str:
        """Return the path of one object, of a namespace's collection or of the whole collection."""
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.full_name} {name!r}: a namespace is needed")
        where = f"namespaces/{namespace}/" if namespace and self.namespaced else ""
        path = f"/{'apis' if self.group else 'api'}/{self.api_version}/{where}{self.plural}"
        if name:
            path = f"{path}/{name}"
        return f"{path}/{subresource}" if subresource else path


PODS: Final = Resource("", "v1", "pods", "Pod")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS: Final = Resource("", "v1", "events", "Event")
DAEMONSETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
ADVANCED_V1ALPHA1: Final = Resource("apps.kruise.io", "v1alpha1", "daemonsets", "DaemonSet")
ADVANCED: Final = Resource("apps.kruise.io", "v1beta1", "daemonsets", "DaemonSet")
REVISIONS: Final = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
