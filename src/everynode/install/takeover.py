"""Takeover of OpenKruise's CRD: replace its definition and keep the DaemonSets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from everynode.errors import UserError
from everynode.install.metadata import FIELD_MANAGER, Object, is_ours
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Conflict
from everynode.kube.resources import CRDS

# Annotation of controller-gen, which generates Kruise's CRDs.
_GENERATOR: Final = "controller-gen.kubebuilder.io/version"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_ATTEMPTS: Final = 10

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
    the apply that follows owns them all. The API server itself writes the status, whenever names or
    versions change: such a write between ours does not stop us half-way.
    """
    replaced = await _patch(client, live, lambda found: _replacement(live, found, wanted), dry_run)
    if not dry_run:
        await _patch(client, replaced, _without_other_managers)


def _replacement(read: Object, found: Object, wanted: Object) -> Object | None:
    """Return the patch to our definition; None if it is no longer the one that was read."""
    if _definition(found) != _definition(read):
        return None
    spec = {key: wanted["spec"].get(key) for key in {**read["spec"], **wanted["spec"]}}
    spec["conversion"] = {"webhook": None, **spec["conversion"]}
    spec["names"] = {**dict.fromkeys(read["spec"]["names"]), **spec["names"]}
    metadata = {"labels": wanted["metadata"]["labels"], "annotations": {_GENERATOR: None}}
    return {"metadata": metadata, "spec": spec}


def _definition(live: Object) -> tuple[Any, ...]:
    """Return what people and tools write of a definition; the API server writes the rest."""
    metadata = live["metadata"]
    return (live["spec"], *(metadata.get(key) for key in ("uid", "labels", "annotations")))


def _without_other_managers(found: Object) -> Object:
    owners = found["metadata"].get("managedFields", [])
    kept = [owner for owner in owners if owner.get("subresource") == "status"]
    return {"metadata": {"managedFields": kept}}


async def _patch(
    client: Client,
    found: Object,
    change: Callable[[Object], Object | None],
    dry_run: bool = False,
) -> Object:
    """Write a change of what was found, computed anew after a write by another client."""
    for attempt in range(1, _ATTEMPTS + 1):
        body = change(found)
        metadata = found["metadata"]
        if body is None:
            break
        precondition = {key: metadata[key] for key in ("uid", "resourceVersion")}
        body = {**body, "metadata": {**body["metadata"], **precondition}}
        request = verbs.patch(CRDS, metadata["name"], body, manager=FIELD_MANAGER, dry_run=dry_run)
        try:
            return await client.write(request, _decode)
        except Conflict:
            if attempt == _ATTEMPTS:
                break
            found = await client.read(verbs.get(CRDS, metadata["name"]), _decode)
    raise UserError(f"{found['metadata']['name']} was changed by another client; try again")
