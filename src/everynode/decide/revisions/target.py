"""Revisions: chooses the target (R1), finds the revision before it, and prunes the history."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, FieldError, Flavour
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.revision_data import decode_revision_data, encode_revision_data
from everynode.api.template_equality import normalise, template_digest
from everynode.decide.actions import (
    Cause,
    CreateRevision,
    DeleteRevision,
    PatchPod,
    PatchRevision,
    RevisionAction,
)
from everynode.decide.pods.patch import patch_pod
from everynode.decide.revisions.ownership import owner_reference

# Kubernetes' encoding of numbers in names: no vowels, and no characters that look alike.
_SAFE_DIGITS: Final = str.maketrans("0123456789", "456789bcdf")

# How many collisions beyond status.collisionCount are tried; even one is rare.
_MAX_COLLISIONS: Final = 4

_NO_GENERATION: Final = FieldError(
    f"metadata.annotations[{keys.TEMPLATE_GENERATION}]",
    "the API server did not write how often the template has changed; every change of the"
    " DaemonSet is compared instead",
)

_FORGED: Final = (
    "is not the template of the DaemonSet, though the revision says so; it is not used, new pods"
    " are made from spec.template. Delete the revision: it is written anew"
)


# Adds defaults that are not in our own table to a template (raw JSON) before it is compared. The
# simulator uses it to run controllers of a later release, whose table has one default more.
TemplateDefaults = Callable[[bytes], bytes]


def no_extra_defaults(template: bytes) -> bytes:
    """Return the template as it is: our own table of defaults is complete."""
    return template


class Revision(msgspec.Struct, frozen=True):
    """A template that was or is the target, and its ControllerRevision if that is stored."""

    name: str
    hash: str
    number: int
    template: bytes  # the raw JSON of the template
    uid: str = ""  # empty while it is not stored
    resource_version: str = ""
    from_hash: str | None = None  # hash of most pods when this became the target
    target_generation: int | None = None  # the generation at which it became the target
    completed: bool = False  # since it became the target it was once available on every node

    @property
    def stored(self) -> bool:
        """Whether the ControllerRevision exists; no pod may refer to it before."""
        return bool(self.uid)


class TargetChoice(msgspec.Struct, frozen=True):
    """The target, and the writes of revisions it needs. They precede all writes of pods."""

    target: Revision
    from_hash: str | None
    actions: tuple[RevisionAction, ...] = ()
    collision_count: int | None = None  # for the status
    duplicates: tuple[str, ...] = ()  # hashes of other revisions with an equal template
    faults: tuple[FieldError, ...] = ()


def read_revision(stored: ControllerRevision, ds_uid: str = "") -> Revision | FieldError:
    """Return a stored ControllerRevision as a Revision; a FieldError if it has no template.

    Annotations that another DaemonSet wrote to it are ignored.
    """
    try:
        template = decode_revision_data(bytes(stored.data))
    except ValueError as error:
        return FieldError(_data_path(stored.metadata.name), f"holds no pod template: {error}")
    return _build_revision(stored, ds_uid, template)


def read_without_template(stored: ControllerRevision, ds_uid: str) -> Revision:
    """Return a revision whose data is not a template: its name, hash and annotations are known.

    It can only be the target, because pods of the target are built from the DaemonSet's spec.
    """
    return _build_revision(stored, ds_uid, b"")


def _build_revision(stored: ControllerRevision, ds_uid: str, template: bytes) -> Revision:
    meta = stored.metadata
    text, _, owner = meta.annotations.get(keys.TARGET_GENERATION, "").partition("/")
    generation = read_number(text) if owner == ds_uid else None
    recorded = generation is not None
    return Revision(
        name=meta.name,
        hash=meta.labels.get(keys.REVISION_HASH) or _hash_from_name(meta.name),
        number=stored.revision,
        template=template,
        uid=meta.uid,
        resource_version=meta.resource_version,
        from_hash=(meta.annotations.get(keys.FROM_REVISION) or None) if recorded else None,
        target_generation=generation,
        completed=recorded and _owner_of_note(meta.annotations.get(keys.COMPLETED, "")) == ds_uid,
    )


def _owner_of_note(note: str) -> str:
    """Return the uid of the DaemonSet in a note of the form `generation/uid`; empty if none."""
    return note.partition("/")[2]


def choose_target(
    ds: DaemonSet,
    revisions: Sequence[Revision],
    pods_by_hash: Mapping[str, int],
    *,
    taken: Collection[str] = (),
    unreadable: Sequence[Revision] = (),
    extra_defaults: TemplateDefaults = no_extra_defaults,
) -> TargetChoice:
    """Choose the revision that pods should run (R1). Its template is always that of the spec.

    `pods_by_hash` counts the own pods by revision hash. `taken` are names of revisions that belong
    to another owner. `unreadable` are own revisions without a template.
    """
    history = _RevisionHistory(ds, revisions, pods_by_hash, unreadable, extra_defaults)
    unchanged_target = history.unchanged_target()
    if unchanged_target is not None and (
        unchanged_target.stored or unchanged_target.name not in taken
    ):
        return history.keep_target(unchanged_target)
    matching = history.matching()
    if not matching:
        return history.create_target(taken)
    previous_target = history.previous_target()
    if previous_target is not None and previous_target in matching:
        return history.keep_target(previous_target)
    return history.return_to(matching)


def prune_history(
    ds: DaemonSet, revisions: Sequence[Revision], live: Collection[str], *, target: Revision
) -> tuple[DeleteRevision, ...]:
    """Delete the oldest revisions beyond the history limit.

    Revisions in `live` and the target are kept, and the revision before it until the target was
    once complete: a held node without a pod may need that revision (R3).
    """
    old = sorted((each for each in revisions if each.hash != target.hash), key=revision_order)
    excess = max(0, len(old) - ds.history_limit)
    needed = None if target.completed else target.from_hash
    spare = [each for each in old if each.hash not in live and each.hash != needed]
    return tuple(_delete(each) for each in spare[:excess] if each.stored)


def is_at_revision(pod: Pod, target: Revision) -> bool:
    """Whether the pod is at the target, by its hash or by its template generation label.

    Only native pods have that label. It keeps pods whose controller, or version of it, computed
    another hash for the same template.
    """
    if pod.hash == target.hash:
        return True
    generation = pod.metadata.labels.get(keys.POD_TEMPLATE_GENERATION)
    controller = pod.metadata.controller
    return (
        generation is not None
        and generation == str(target.target_generation)
        and (controller is None or controller.group == keys.NATIVE_GROUP)
    )


def relabel_patch(pod: Pod, choice: TargetChoice) -> PatchPod | None:
    """Return the patch that gives the pod of a duplicate revision the hash of the target."""
    if pod.hash not in choice.duplicates or is_at_revision(pod, choice.target):
        return None
    labels = {keys.REVISION_HASH: choice.target.hash}
    return patch_pod(pod, Cause.RELABEL, metadata={"labels": labels})


def revision_hash(template: bytes, collision_count: int | None) -> str:
    """Return a short hash of a template that is valid in labels and in names."""
    text = digest(template) + (b"" if collision_count is None else b"%d" % collision_count)
    number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")
    return str(number).translate(_SAFE_DIGITS)


@lru_cache(maxsize=256)
def digest(template: bytes) -> bytes:
    """Return a digest of the normalised template; equal templates have equal digests."""
    return hashlib.blake2b(template_digest(normalise(template)), digest_size=16).digest()


def template_generation(ds: DaemonSet) -> int | None:
    """Return the template generation of a native DaemonSet; None for an Advanced one."""
    if ds.flavour is not Flavour.NATIVE:
        return None
    return read_number(ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, ""))


def read_number(text: str) -> int | None:
    """Return the number in an annotation; None if it is not a number."""
    # A longer number may not fit into an int64, and would be slow to parse.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


class _RevisionHistory:
    """The revisions of one DaemonSet while its target is chosen."""

    def __init__(
        self,
        ds: DaemonSet,
        revisions: Sequence[Revision],
        pods_by_hash: Mapping[str, int],
        unreadable: Sequence[Revision],
        extra_defaults: TemplateDefaults,
    ) -> None:
        self.ds = ds
        self._extra_defaults = extra_defaults
        self._template = extra_defaults(ds.template)
        self.pods_by_hash = pods_by_hash
        self.revisions = sorted(revisions, key=revision_order, reverse=True)  # newest first
        # The revisions that may be recorded as the target.
        self.claimants = sorted((*revisions, *unreadable), key=revision_order, reverse=True)
        self.digest = digest(self._template)
        self.native = ds.flavour is Flavour.NATIVE
        # It increases whenever the template may have changed.
        generation = template_generation(ds)
        self.generation = ds.metadata.generation if generation is None else generation

    def unchanged_target(self) -> Revision | None:
        """Return the current target if the template cannot have changed since it was chosen."""
        if self.native:
            recorded = self._last_recorded()
            settled = recorded is not None and recorded.target_generation == self.generation
            return recorded if settled else None
        hash = self.ds.status.update_revision
        # Above the generation it was written by another client, or restored from a backup.
        if self.ds.metadata.generation != self.ds.status.observed_generation or not hash:
            return None
        return self._by_hash(hash) or self._recreate_lost(hash)

    def previous_target(self) -> Revision | None:
        """Return the last chosen target; None if there is none."""
        recorded = self._last_recorded()
        if self.native or recorded is None:
            return recorded or self._by_hash(self.ds.status.update_revision)
        # After a crash before the status write, the revision's record is newer than the status. A
        # status about a generation that never was is not ours.
        assert recorded.target_generation is not None
        observed = self.ds.status.observed_generation
        if recorded.target_generation > observed or observed > self.ds.metadata.generation:
            return recorded
        return self._by_hash(self.ds.status.update_revision) or recorded

    def matching(self) -> list[Revision]:
        """Return the revisions that equal the template, those with the most pods first."""
        same = [each for each in self.revisions if self._equals_template(each)]
        return sorted(same, key=lambda each: -self.pods_by_hash.get(each.hash, 0))

    def keep_target(self, target: Revision) -> TargetChoice:
        """Keep the target, and write what its record lacks."""
        if not target.stored:
            return self._choice(target, (self._create_action(target),))
        if target.target_generation is None:
            # Taken over from another controller, possibly during a rollout.
            others = {h: n for h, n in self.pods_by_hash.items() if h != target.hash}
            source = self._from_revision(target, others) or self._from_revision(
                target, self.pods_by_hash
            )
            return self._record(target, from_hash=source)
        if self.native and target.target_generation != self.generation:
            return self._record(target, from_hash=target.from_hash)
        return self._choice(target)

    def return_to(self, matching: Sequence[Revision]) -> TargetChoice:
        """Make an old revision the target again, with the next number."""
        kept, *others = matching
        highest = max((each.number for each in self.revisions if each is not kept), default=0)
        gone = [each for each in others if not self.pods_by_hash.get(each.hash)]
        merged = dict(self.pods_by_hash)
        for each in others:
            merged[kept.hash] = merged.get(kept.hash, 0) + merged.pop(each.hash, 0)
        choice = self._record(
            kept, from_hash=self._from_revision(kept, merged), number=max(kept.number, highest + 1)
        )
        deleted = tuple(_delete(each) for each in gone)
        return msgspec.structs.replace(choice, actions=(*choice.actions, *deleted))

    def create_target(self, taken: Collection[str]) -> TargetChoice:
        """Create a revision with a free name for a template that has none."""
        count = self.ds.status.collision_count
        names = {each.name for each in self.claimants} | set(taken)
        while (name := f"{self.ds.name}-{revision_hash(self._template, count)}") in names:
            count = (count or 0) + 1
        target = self._new(revision_hash(self._template, count))
        target = msgspec.structs.replace(
            target, from_hash=self._from_revision(target, self.pods_by_hash)
        )
        assert target.name == name
        return self._choice(target, (self._create_action(target),), collision_count=count)

    def _last_recorded(self) -> Revision | None:
        """Return the revision that became the target last, by the records of the revisions."""
        recorded = [
            (each.target_generation, each)
            for each in self.claimants
            if each.target_generation is not None
        ]
        # A record with a future generation is ignored if there are others. Otherwise it would
        # count as the last, and the target would be written again at every reconcile.
        past = [pair for pair in recorded if pair[0] <= self.generation] or recorded
        last = max((generation for generation, _ in past), default=0)
        return self._prefer_equal([each for generation, each in past if generation == last])

    def _by_hash(self, hash: str) -> Revision | None:
        return self._prefer_equal([each for each in self.claimants if each.hash == hash])

    def _prefer_equal(self, claimants: Sequence[Revision]) -> Revision | None:
        """Return the newest of several revisions; one that equals the template is preferred."""
        true = (each for each in claimants if len(claimants) > 1 and self._equals_template(each))
        return next(true, next(iter(claimants), None))

    def _equals_template(self, claimant: Revision) -> bool:
        if not claimant.template:
            return False
        return digest(self._extra_defaults(claimant.template)) == self.digest

    def _forged_revisions(self, target: Revision) -> tuple[FieldError, ...]:
        """Return a fault for each revision that is marked as the target with another template."""
        return tuple(
            FieldError(_data_path(each.name), _FORGED)
            for each in self.revisions
            if (
                each.hash == target.hash
                or each.name == target.name
                or each.target_generation == self.generation
            )
            and not self._equals_template(each)
        )

    def _recreate_lost(self, hash: str) -> Revision:
        """Return a new revision for the hash in the status, whose revision no longer exists."""
        target = self._new(hash)
        others = {h: n for h, n in self.pods_by_hash.items() if h != hash}
        source = self._from_revision(target, others) or self._from_revision(
            target, self.pods_by_hash
        )
        return msgspec.structs.replace(target, from_hash=source)

    def _new(self, hash: str) -> Revision:
        return Revision(
            name=f"{self.ds.name}-{hash}",
            hash=hash,
            number=max((each.number for each in self.revisions), default=0) + 1,
            template=self.ds.template,
            target_generation=self.generation,
        )

    def _from_revision(self, target: Revision, pods_by_hash: Mapping[str, int]) -> str | None:
        """Return the hash that most pods have; the newest of several, None without pods."""
        known = [target, *(each for each in self.revisions if each.hash != target.hash)]
        counted = [each for each in known if pods_by_hash.get(each.hash)]
        if not counted:
            # Pods of an unknown revision show that this is not a first installation.
            return target.hash if any(pods_by_hash.values()) else None
        return min(
            counted, key=lambda each: (-pods_by_hash[each.hash], -each.number, each.hash)
        ).hash

    def _record(
        self, target: Revision, *, from_hash: str | None, number: int | None = None
    ) -> TargetChoice:
        """Record on the revision that it is the target, since which generation, from which hash.

        One that is the target again, with a new number, is not complete yet.
        """
        chosen = msgspec.structs.replace(
            target,
            from_hash=from_hash,
            target_generation=self.generation,
            number=target.number if number is None else number,
            completed=target.completed and number is None,
        )
        body: dict[str, Any] = {
            "metadata": {
                "annotations": {keys.FROM_REVISION: from_hash, **self._generation_note()},
                "uid": target.uid,
                "resourceVersion": target.resource_version,
            }
        }
        if chosen.completed != target.completed:
            body["metadata"]["annotations"][keys.COMPLETED] = None
        if chosen.number != target.number:
            body["revision"] = chosen.number
        return self._choice(chosen, (PatchRevision(target.name, target.uid, body),))

    def _generation_note(self) -> dict[str, str]:
        return {keys.TARGET_GENERATION: f"{self.generation}/{self.ds.uid}"}

    def _create_action(self, target: Revision) -> CreateRevision:
        labels = _template_labels(target.template)
        ours = {keys.FROM_REVISION: target.from_hash} if target.from_hash else {}
        body = {
            "apiVersion": keys.APPS_V1,
            "kind": "ControllerRevision",
            "metadata": {
                "name": target.name,
                "namespace": self.ds.namespace,
                "labels": {**labels, keys.REVISION_HASH: target.hash},
                "annotations": {
                    **self.ds.metadata.annotations,
                    **ours,
                    **self._generation_note(),
                },
                "ownerReferences": [owner_reference(self.ds)],
            },
            "data": msgspec.Raw(encode_revision_data(target.template, self.ds.flavour)),
            "revision": target.number,
        }
        return CreateRevision(target.name, body)

    def _collisions(self, target: Revision) -> int | None:
        """Return the collision count with which the target's hash was computed.

        It may be higher than that of the status. If none fits, that of the status is returned.
        """
        stored = self.ds.status.collision_count
        counts = (stored, *range((stored or 0) + 1, (stored or 0) + 1 + _MAX_COLLISIONS))
        candidates = (each for each in counts if revision_hash(self._template, each) == target.hash)
        return next(candidates, stored)

    def _choice(
        self,
        target: Revision,
        actions: tuple[RevisionAction, ...] = (),
        *,
        collision_count: int | None = None,
    ) -> TargetChoice:
        if collision_count is None:
            collision_count = self._collisions(target)
        unnumbered = self.native and template_generation(self.ds) is None
        return TargetChoice(
            # Never the revision's template: any client that writes revisions could have changed it.
            target=msgspec.structs.replace(target, template=self.ds.template),
            from_hash=target.from_hash,
            actions=actions,
            collision_count=collision_count,
            duplicates=tuple(
                sorted(
                    each.hash
                    for each in self.revisions
                    if each.hash != target.hash and self._equals_template(each)
                )
            ),
            faults=(*((_NO_GENERATION,) if unnumbered else ()), *self._forged_revisions(target)),
        )


def _template_labels(template: bytes) -> dict[str, str]:
    metadata = msgspec.json.decode(template, type=dict[str, Any]).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _hash_from_name(name: str) -> str:
    """Return the hash of a revision without the label: its name, or its suffix if too long."""
    return name if len(name) <= 63 else name.rpartition("-")[2]


def revision_order(revision: Revision) -> tuple[int, str]:
    """Return the sort key of revisions: the order in which they became the target."""
    return revision.number, revision.name


def _data_path(name: str) -> str:
    return f"ControllerRevision {name}: data"


def _delete(revision: Revision) -> DeleteRevision:
    return DeleteRevision(revision.name, revision.uid, revision.resource_version)
