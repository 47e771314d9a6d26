"""L3: how many writes a pod may take, also if its preDelete hook was removed meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.daemonset import Flavour
from everynode.api.objects import Pod
from everynode.api.versions import decode_daemonset
from everynode.kube.watch.decode import Decoder
from everynode.sim.checks.write_cost import max_writes
from everynode.sim.plans.manifests import daemonset

HOOK = {"preDelete": {"labelsHandler": {"hook": "yes"}, "markPodNotReady": True}}


def _pod(*, blocked: bool = False, preparing: bool = False) -> Pod:
    message = '{"preDeleteHook":true}' if blocked else ""
    gate = {"type": "KruisePodReady", "status": "False" if blocked else "True", "message": message}
    labels = {"lifecycle.apps.kruise.io/state": "PreparingDelete"} if preparing else {}
    body: dict[str, Any] = {
        "metadata": {"name": "agent-1", "labels": labels},
        "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}]},
        "status": {"conditions": [gate]},
    }
    return Decoder(Pod).one(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("spec", "pod", "writes"),
    [
        ({}, _pod(), 3),
        ({"lifecycle": HOOK}, _pod(), 5),
        ({}, _pod(blocked=True, preparing=True), 5),
        ({}, _pod(blocked=True), 4),
    ],
    ids=["no hook", "a hook", "a hook that is gone", "a hook that went before it was told"],
)
def test_a_pod_costs_the_writes_of_its_steps(spec: dict[str, Any], pod: Pod, writes: int) -> None:
    manifest = msgspec.json.encode(daemonset(**spec))
    assert max_writes(decode_daemonset(manifest, flavour=Flavour.ADVANCED), pod) == writes
