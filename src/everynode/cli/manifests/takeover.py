"""Replacing the CRD that OpenKruise installed, without touching the DaemonSets it holds."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.cli.manifests.names import MANAGER, Object, is_ours
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import CRDS

# Written by the tool that Kruise generates its CRDs with.
_GENERATOR: Final = "controller-gen.kubebuilder.io/version"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def is_kruises(live: Object) -> bool:
    """Whether a CRD on a cluster is Kruise's: its webhook converts it, or its tool wrote it."""
    if live["spec"].get("conversion", {}).get("strategy") == "Webhook":
        return True
    return _GENERATOR in live["metadata"].get("annotations", {}) and not is_ours(live)


def helm_release(live: Object) -> str:
    """Return the name of the Helm release that brought an object, empty if none did."""
    name: str = live["metadata"].get("annotations", {}).get(_HELM_RELEASE, "")
    return name


async def take_over(client: Client, live: Object, wanted: Object, *, dry_run: bool = False) -> None:
    """Put our definition in the place of another, in one write, if it is still as we saw it.

    Applying cannot do this: it leaves fields that others own, and a webhook beside the strategy
    None is refused. Afterwards the fields belong to nobody, so that applying can own them.
    """
    metadata = live["metadata"]
    precondition = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    spec = {key: wanted["spec"].get(key) for key in {**live["spec"], **wanted["spec"]}}
    spec["conversion"] = {"webhook": None, **spec["conversion"]}
    spec["names"] = {**dict.fromkeys(live["spec"]["names"]), **spec["names"]}
    body = {
        "metadata": {
            **precondition,
            "labels": wanted["metadata"]["labels"],
            "annotations": {_GENERATOR: None},
        },
        "spec": spec,
    }
    after = await _patch(client, metadata["name"], body, dry_run=dry_run)
    if dry_run:
        return
    owners = after["metadata"].get("managedFields", [])
    kept = [owner for owner in owners if owner.get("subresource") == "status"]
    if kept != owners:
        version = after["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version, "managedFields": kept}}
        await _patch(client, metadata["name"], body)


async def _patch(client: Client, name: str, body: Object, *, dry_run: bool = False) -> Object:
    request = verbs.patch(CRDS, name, body, manager=MANAGER, dry_run=dry_run)
    return await client.write(request, _decode)
