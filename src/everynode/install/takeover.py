"""Takeover of OpenKruise's CRD: replace its definition and keep the DaemonSets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.install.metadata import FIELD_MANAGER, Object, is_ours
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import CRDS

# Annotation of controller-gen, which generates Kruise's CRDs.
_GENERATOR: Final = "controller-gen.kubebuilder.io/version"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def is_kruise_crd(live: Object) -> bool:
    """Whether a live CRD is OpenKruise's: it has a conversion webhook or is from controller-gen."""
    if live["spec"].get("conversion", {}).get("strategy") == "Webhook":
        return True
    return _GENERATOR in live["metadata"].get("annotations", {}) and not is_ours(live)


def helm_release(live: Object) -> str:
    """Return the name of the Helm release that brought an object, empty if none did."""
    name: str = live["metadata"].get("annotations", {}).get(_HELM_RELEASE, "")
    return name


async def take_over(client: Client, live: Object, wanted: Object, *, dry_run: bool = False) -> None:
    """Replace the definition with ours in one write, if it has not changed since it was read.

    Server-side apply cannot do this: it keeps fields of other managers, and the server refuses a
    webhook beside the conversion strategy None. Afterwards the managed fields are removed, so that
    the apply that follows owns them all.
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
    request = verbs.patch(CRDS, name, body, manager=FIELD_MANAGER, dry_run=dry_run)
    return await client.write(request, _decode)
