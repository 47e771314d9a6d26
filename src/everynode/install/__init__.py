"""Installation: CRD, Namespace, RBAC, FlowSchemas, Deployment, in the order they are applied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from everynode.api.crd import crd
from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.install.deployment import controller_objects
from everynode.install.flow_schemas import flow_schemas
from everynode.install.metadata import LABELS, Object, new_object, with_labels
from everynode.install.rbac import dashboard_objects, rbac_objects

_POD_SECURITY: Final = "pod-security.kubernetes.io"
# Namespaces that come with a cluster are shared with others: Everynode does not label them.
_BUILT_IN: Final = re.compile(r"default|kube-.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """The options of an installation."""

    namespace: str = CONTROLLER_NAMESPACE
    image: str = ""  # of the controller; empty: no Deployment
    native: bool = False
    dashboard: bool = False


def install_objects(options: InstallOptions) -> list[Object]:
    """All objects to install; an object comes after those it needs."""
    found = [with_labels(crd(), LABELS)]
    if not _BUILT_IN.fullmatch(options.namespace):
        found.append(_namespace(options.namespace))
    found += rbac_objects(options.namespace, native=options.native)
    if options.dashboard:
        found += dashboard_objects(options.namespace)
    found += flow_schemas(options.namespace)
    if options.image:
        found += controller_objects(
            options.namespace,
            image=options.image,
            native=options.native,
            dashboard=options.dashboard,
        )
    return found


def _namespace(name: str) -> Object:
    # All pods of the namespace are held to the pod security level that the controller meets.
    security = {f"{_POD_SECURITY}/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return with_labels(new_object("v1", "Namespace", name), security)
