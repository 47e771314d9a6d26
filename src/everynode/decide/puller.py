"""What a puller looks like: a pod that makes a node fetch images and never runs anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.taints import with_daemon_tolerations_json
from everynode.decide.claim import owner_reference
from everynode.decide.name import derived_name
from everynode.decide.pod import as_object, is_list, pin
from everynode.decide.revisions import Revision

Object = dict[str, Any]

# No image has this; a container that could start would run the workload a second time.
COMMAND: Final = "/everynode-only-pulls-this-image"
_NOBODY: Final = 65534

# What decides whether and how the kubelet can pull, taken over from the workload.
_SHARED: Final = (
    "imagePullSecrets",
    "serviceAccountName",
    "serviceAccount",
    "hostNetwork",
    "runtimeClassName",
    "os",
)


class Pull(msgspec.Struct, frozen=True):
    """An image to be fetched, and when the kubelet asks the registry for it."""

    image: str
    policy: str = "IfNotPresent"


def puller_name(ds: DaemonSet, node: str, revision: str) -> str:
    """The name of the puller that fetches a revision's images on a node."""
    return derived_name(f"{ds.name[:44]}-pull", (ds.uid, node, revision, "pull"))


def build_puller(
    ds: DaemonSet, target: Revision, node: str, *, pulls: Sequence[Pull], timeout: int
) -> Object:
    """The body of a puller: pinned like a daemon pod, gone with its DaemonSet, never claimed."""
    template: Object = msgspec.json.decode(target.template, type=dict[str, Any])
    given = as_object(template.get("spec"))
    owner = {**owner_reference(ds), "controller": False, "blockOwnerDeletion": False}
    windows = as_object(given.get("os")).get("name") == "windows"
    spec: Object = {name: given[name] for name in _SHARED if given.get(name)}
    spec |= {
        "affinity": pin(node, affinity={}, preferred={}),
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
    if not windows:
        spec["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": puller_name(ds, node, target.hash),
            "namespace": ds.namespace,
            "labels": {keys.PULLER: ds.uid},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _container(index: int, pull: Pull, windows: bool) -> Object:
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
