"""Facts about a cluster that decide whether Everynode can work on it: plain values, no I/O."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.kube.permissions import Permission

Object = dict[str, Any]
# What was read: no objects if there are none, None if it was not allowed to look.
Objects = tuple[Object, ...] | None

KRUISE_CONTROLLER: Final = "kruise-controller-manager"  # Kruise's Deployment


class StatusManager(msgspec.Struct, frozen=True):
    """Who wrote the status of one DaemonSet last, and whether Everynode did before."""

    daemonset: str  # namespace/name
    last: str  # a field manager; empty if none is recorded
    ours: bool  # Everynode is among the writers


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a cluster; None where reading was not allowed."""

    version: tuple[int, int]
    namespace: str  # of the controller
    native: bool = False  # whether native DaemonSets are, or are to be, served
    crd: Objects = ()
    controller: Objects = ()  # the Deployment of Everynode
    lease: Objects = ()
    flow_schemas: Objects = None  # None also where the server has no such kind
    kruise_controllers: Objects = ()  # Deployments
    webhooks: Objects = ()  # webhook configurations of Kruise
    advanced_writers: tuple[StatusManager, ...] | None = ()
    native_writers: tuple[StatusManager, ...] | None = ()
    missing_for_account: tuple[Permission, ...] = ()  # of the controller's service account
    missing_for_you: tuple[Permission, ...] = ()
    not_checked: tuple[str, ...] = ()  # why something could not be looked at


def status_writer(metadata: Object, our_manager: str) -> StatusManager:
    """Return who wrote the status of an object, from its metadata alone."""
    entries = [
        each for each in metadata.get("managedFields") or () if each.get("subresource") == "status"
    ]
    # Times have seconds only: between writers of the same second the other one is taken for the
    # later, because two writers are what is looked for.
    last: Object = max(
        entries,
        key=lambda each: (each.get("time", ""), each.get("manager") != our_manager),
        default={},
    )
    return StatusManager(
        daemonset=f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        last=last.get("manager", ""),
        ours=any(each.get("manager") == our_manager for each in entries),
    )
