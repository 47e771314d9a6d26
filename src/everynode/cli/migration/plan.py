"""Plan of a migration: what is checked before, and the next step in any state. No I/O.

A record of the migration is stored in the cluster before anything is changed. Source, target and
record alone decide what comes next, so that a migration can be interrupted at any point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.conversion import Conversion, convert
from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.objects import ControllerRevision
from everynode.api.revision_data import encode_revision_data
from everynode.api.template_equality import normalise
from everynode.api.versions import decode_daemonset
from everynode.errors import UserError
from everynode.inspect.advice import in_namespace
from everynode.inspect.evaluate import is_complete

Object = dict[str, Any]

OTHER: Final = {Flavour.NATIVE: Flavour.ADVANCED, Flavour.ADVANCED: Flavour.NATIVE}
KIND_TEXT: Final = {Flavour.NATIVE: "native", Flavour.ADVANCED: "Advanced"}
_VERSIONS: Final = {Flavour.NATIVE: keys.APPS_V1, Flavour.ADVANCED: keys.V1BETA1}


class MigrationStep(StrEnum):
    """What is done next."""

    STORE_RECORD = "store the record"
    DELETE_SOURCE = "delete the source and leave its pods"
    AWAIT_DELETION = "wait until the source is gone"
    CREATE_TARGET = "create the target"
    AWAIT_ADOPTION = "wait until the target has adopted the pods"


class MigrationRecord(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is stored before the first change: enough to finish the migration from any point."""

    source_uid: str
    source_generation: int  # the spec that was converted
    manifest: Object  # of the target
    pods: tuple[str, ...]  # uids
    revision: Object | None = None  # created before the target; see `revision_for_pods`


class MigrationState(msgspec.Struct, frozen=True, kw_only=True):
    """What of a migration is in the cluster."""

    name: str
    flavour: Flavour  # of the source
    source: Object | None = None
    target: Object | None = None
    record: MigrationRecord | None = None

    @property
    def source_name(self) -> str:
        """The source, as one would type it."""
        return f"{self.flavour.short}/{self.name}"

    @property
    def target_name(self) -> str:
        """The target, as one would type it."""
        return f"{OTHER[self.flavour].short}/{self.name}"


def record_name(name: str, flavour: Flavour) -> str:
    """Return the name of the ConfigMap with the record."""
    return f"everynode-migrate-{flavour.short}-{name}"


def next_step(state: MigrationState) -> MigrationStep:
    """Return what is done next; raises UserError if a person has to decide."""
    source, record = state.source, state.record
    if source is None and record is None:
        raise _no_source(state)
    if source is not None and state.target is not None:
        raise UserError(
            f"there are both {state.source_name} and {state.target_name}: delete the one that is "
            "not wanted, with --cascade=orphan if its pods are to stay"
        )
    if record is None:
        return MigrationStep.STORE_RECORD
    if source is None:
        return MigrationStep.CREATE_TARGET if state.target is None else MigrationStep.AWAIT_ADOPTION
    metadata = source["metadata"]
    if metadata["uid"] != record.source_uid:
        raise UserError(
            f"{state.source_name} was created anew since its migration began; to begin again, "
            f"kubectl delete configmap {record_name(state.name, state.flavour)}"
        )
    if metadata.get("deletionTimestamp"):
        return MigrationStep.AWAIT_DELETION
    # A spec that was changed since is converted and checked again.
    same = metadata["generation"] == record.source_generation
    return MigrationStep.DELETE_SOURCE if same else MigrationStep.STORE_RECORD


def _no_source(state: MigrationState) -> UserError:
    if state.target is not None:
        return UserError(
            f"there is no {state.source_name}, but there is {state.target_name}: it has the kind "
            "that you want already"
        )
    return UserError(f"there is no {state.source_name}; `everynode get -A` lists all")


def convert_source(state: MigrationState, *, drop: bool) -> Conversion:
    """Return the target's manifest; raises UserError if the source cannot be migrated now."""
    source = state.source or {}
    ds = decode_daemonset(msgspec.json.encode(source), flavour=state.flavour)
    owner = next(
        (
            each
            for each in source["metadata"].get("ownerReferences") or ()
            if each.get("controller")
        ),
        None,
    )
    if owner is not None:
        raise UserError(
            f"{state.source_name} belongs to {owner['kind']} {owner['name']}, which would create "
            "it anew; change it there"
        )
    if source["metadata"].get("deletionTimestamp"):
        raise UserError(f"{state.source_name} is being deleted")
    if not is_complete(ds):
        where = in_namespace(source["metadata"]["namespace"])
        raise UserError(
            f"the rollout of {state.source_name} is not complete, so that a pod could be replaced; "
            f"see `everynode status {state.source_name}{where}`, and migrate when it is"
        )
    conversion = convert(source, _VERSIONS[OTHER[state.flavour]])
    if conversion.lost and not drop:
        raise UserError(
            f"the {KIND_TEXT[OTHER[state.flavour]]} kind has no field for parts of "
            f"{state.source_name}; --drop leaves out "
            + ", ".join(f"{each.path} ({each.instead})" for each in conversion.lost)
        )
    return conversion


def check_meaning(state: MigrationState, stored: Object) -> None:
    """Compare the source with the target as the server would store it; raises UserError."""
    source = decode_daemonset(msgspec.json.encode(state.source), flavour=state.flavour)
    target = decode_daemonset(msgspec.json.encode(stored), flavour=OTHER[state.flavour])
    different = list(_differences(source, target))
    if different:
        raise UserError(
            f"{state.target_name} would not mean the same as {state.source_name}: "
            f"{', '.join(different)} would differ; nothing was changed"
        )


def _differences(source: DaemonSet, target: DaemonSet) -> Iterator[str]:
    if source.selector != target.selector:
        yield "spec.selector"
    if _template(source) != _template(target):
        yield "spec.template"
    if source.min_ready_seconds != target.min_ready_seconds:
        yield "spec.minReadySeconds"
    before, after = source.strategy, target.strategy
    if before.type is not after.type:
        yield "spec.updateStrategy.type"
    if (before.max_unavailable, before.max_surge) != (after.max_unavailable, after.max_surge):
        yield "spec.updateStrategy.rollingUpdate"


def _template(ds: DaemonSet) -> Object:
    return normalise(msgspec.json.decode(ds.template))


def revision_for_pods(
    stored: Object, pods: Sequence[Object], revisions: Sequence[ControllerRevision]
) -> Object | None:
    """Return a revision of a native target that makes its pods up to date; None if there is one.

    The native controller compares templates byte by byte, with the defaults of its kind. It would
    not recognise the revision of a DaemonSet that was created as an Advanced one, and replace all
    pods. The new revision has the target's bytes and the hash that the pods have already.

    Args:
        stored: The target as the server would store it.
        pods: The metadata of the source's pods.
        revisions: The revisions that the selector matches.
    """
    target = decode_daemonset(msgspec.json.encode(stored), flavour=Flavour.NATIVE)
    data = encode_revision_data(target.template, Flavour.NATIVE)
    hashes = {pod.get("labels", {}).get(keys.REVISION_HASH, "") for pod in pods}
    if len(hashes) != 1 or "" in hashes:
        return None  # no pod, or pods that are replaced in any case
    [hash_] = hashes
    if any(
        bytes(each.data) == data and each.metadata.labels.get(keys.REVISION_HASH) == hash_
        for each in revisions
    ):
        return None
    labels = stored["spec"]["template"]["metadata"]["labels"] | {keys.REVISION_HASH: hash_}
    return {
        "apiVersion": keys.APPS_V1,
        "kind": "ControllerRevision",
        "metadata": {"name": f"{stored['metadata']['name']}-{hash_}-native", "labels": labels},
        "data": msgspec.json.decode(data),
        "revision": max((each.revision for each in revisions), default=0) + 1,
    }


def make_record(
    state: MigrationState, manifest: Object, pods: Sequence[str], revision: Object | None = None
) -> MigrationRecord:
    """Return what is stored before the first change."""
    assert state.source is not None
    metadata = state.source["metadata"]
    return MigrationRecord(
        source_uid=metadata["uid"],
        source_generation=metadata["generation"],
        manifest=manifest,
        pods=tuple(sorted(pods)),
        revision=revision,
    )


def is_observed(daemonset: Object) -> bool:
    """Whether a controller has written the status of the newest spec."""
    observed: int = daemonset.get("status", {}).get("observedGeneration", 0)
    return observed >= int(daemonset["metadata"]["generation"])


def owned_pods(pods: Sequence[Object], uid: str) -> set[str]:
    """Return the uids of the pods that an owner controls, given their metadata."""
    return {
        pod["uid"]
        for pod in pods
        if any(
            each.get("controller") and each["uid"] == uid
            for each in pod.get("ownerReferences") or ()
        )
    }
