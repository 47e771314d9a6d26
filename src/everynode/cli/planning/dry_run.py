"""Dry run: whether the API server would accept a pod of the new version. Nothing is stored."""

from __future__ import annotations

import msgspec

from everynode.controller.dry_run import dry_run_request, refusal_of
from everynode.decide.fleet.verification import Verification, verify_target
from everynode.decide.pods.own_pods import OwnPods
from everynode.decide.view import NodeView
from everynode.errors import one_line
from everynode.inspect.evaluate import Evaluation
from everynode.kube.client import Client
from everynode.kube.errors import Forbidden, KubeError
from everynode.kube.permissions import missing_permission


class DryRun(msgspec.Struct, frozen=True):
    """The response of the API server to one pod of the new version."""

    node: str = ""  # the node of the pod; empty: it was not asked
    refusal: str = ""  # its words; empty if it accepts the pod
    unknown: str = ""  # why there is no answer


NOT_ASKED = DryRun()


def pod_to_try(before: Evaluation, first: str) -> Verification | None:
    """Return the pod of the node that is updated first; None if no node would get one."""
    names = [first] if first else []
    names += [each.name for each in before.assessments.values() if each.eligibility.should_run]
    if not names:
        return None
    node, pods = names[0], before.pods.get(names[0], ())
    view = NodeView(name=node, node=before.nodes.get(node), pods=pods)
    old = next(iter(OwnPods(pods).active), None)
    return verify_target(before.plan, view, old, now=0.0)


async def try_pod(client: Client, wanted: Verification, namespace: str) -> DryRun:
    """Create the pod with dryRun=All; a lacking right or a broken server is not a refusal."""
    node = wanted.action.node
    try:
        await client.write(dry_run_request(wanted.action, namespace), bytes)
    except KubeError as error:
        if isinstance(error, Forbidden):
            return DryRun(unknown=f"you lack the permission to {missing_permission(error)}")
        refusal = refusal_of(error, wanted)
        if refusal is None:
            return DryRun(unknown=one_line(error.message))
        return DryRun(node, one_line(refusal))
    return DryRun(node)
