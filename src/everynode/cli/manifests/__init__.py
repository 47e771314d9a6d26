"""What is installed on a cluster, in the order in which it is applied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from everynode.api.crd import crd
from everynode.cli.manifests.names import LABELS, Object, labelled, named
from everynode.cli.manifests.rbac import access
from everynode.cli.manifests.workload import workload

NAMESPACE: Final = "everynode-system"
_POD_SECURITY: Final = "pod-security.kubernetes.io"
# Namespaces that come with a cluster: others live there, so they are not ours to label.
_BUILT_IN: Final = re.compile(r"default|kube-.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one can choose about an installation."""

    namespace: str = NAMESPACE
    image: str = ""  # empty: the controller is run some other way
    native: bool = False


def objects(settings: Settings) -> list[Object]:
    """Everything to install, each after what it needs."""
    found = [labelled(crd(), LABELS)]
    if not _BUILT_IN.fullmatch(settings.namespace):
        found.append(_namespace(settings.namespace))
    found += access(settings.namespace, native=settings.native)
    if settings.image:
        found += workload(settings.namespace, image=settings.image, native=settings.native)
    return found


def _namespace(name: str) -> Object:
    # Whatever else comes to live here is held to the same rules as the controller.
    security = {f"{_POD_SECURITY}/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return labelled(named("v1", "Namespace", name), security)
