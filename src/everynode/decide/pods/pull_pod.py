"""Pull pod: the body of a pod that makes a node pull images and never runs a container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.taints import with_daemon_tolerations_json
from everynode.decide.pods.build import as_object, bound_to_node, is_list, pin_to_node
from everynode.decide.pods.name import derived_name
from everynode.decide.revisions.ownership import owner_reference
from everynode.decide.revisions.target import Revision

Object = dict[str, Any]

# No image has this command. A container that starts would run a second daemon on the node.
COMMAND: Final = "/everynode-only-pulls-this-image"
_UNPRIVILEGED_USER: Final = 65534

# Fields copied from the template because the kubelet's pull depends on them.
_SHARED: Final = (
    "imagePullSecrets",
    "serviceAccountName",
    "serviceAccount",
    "hostNetwork",
    "runtimeClassName",
    "os",
)


class ImagePull(msgspec.Struct, frozen=True):
    """An image to pull, and its imagePullPolicy."""

    image: str
    policy: str = "IfNotPresent"


def pull_pod_name(ds: DaemonSet, node: str, revision: str) -> str:
    """Return the name of the pull pod for a revision's images on a node."""
    return derived_name(f"{ds.name[:44]}-pull", (ds.uid, node, revision, "pull"))


def build_pull_pod(
    ds: DaemonSet,
    target: Revision,
    node: str,
    *,
    pulls: Sequence[ImagePull],
    timeout: int,
    by_scheduler: bool = True,
) -> Object:
    """Return the body of a pull pod, pinned to the node like a daemon pod.

    Its owner reference makes the garbage collector delete it with the DaemonSet. The reference is
    not a controller reference, because that would make it a daemon pod.
    """
    template: Object = msgspec.json.decode(target.template, type=dict[str, Any])
    given = as_object(template.get("spec"))
    owner = {**owner_reference(ds), "controller": False, "blockOwnerDeletion": False}
    windows = as_object(given.get("os")).get("name") == "windows"
    spec: Object = {name: given[name] for name in _SHARED if given.get(name)}
    spec |= {
        "affinity": pin_to_node(node, affinity={}, preferred={}),
        "tolerations": with_daemon_tolerations_json(
            given.get("tolerations") if is_list(given.get("tolerations")) else None,
            host_network=given.get("hostNetwork") is True,
        ),
        "restartPolicy": "Never",
        "activeDeadlineSeconds": timeout,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "dnsPolicy": "Default",
        "containers": [_container(index, pull, windows) for index, pull in enumerate(pulls)],
    }
    if not by_scheduler:
        spec |= bound_to_node(node)
    if not windows:
        spec["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": _UNPRIVILEGED_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pull_pod_name(ds, node, target.hash),
            "namespace": ds.namespace,
            "labels": {keys.PULL_POD_OWNER: ds.uid},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _container(index: int, pull: ImagePull, windows: bool) -> Object:
    container: Object = {
        "name": f"pull-{index}",
        "image": pull.image,
        "imagePullPolicy": pull.policy,
        "command": [COMMAND],
        "resources": {
            "requests": {"cpu": "1m", "memory": "1Mi"},
            "limits": {"cpu": "10m", "memory": "16Mi"},
        },
    }
    if not windows:
        container["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    return container
