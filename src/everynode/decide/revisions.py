"""Which revision is the target, which one it came from, and what becomes of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, Fault, Flavour
from everynode.api.meaning import normalise, template_digest
from everynode.api.objects import ControllerRevision, Pod
from everynode.decide.actions import (
    Because,
    CreateRevision,
    DeleteRevision,
    PatchPod,
    PatchRevision,
    RevisionAction,
)
from everynode.decide.claim import owner_reference
from everynode.decide.patch import patch_pod
from everynode.decide.revision_data import read_data, write_data

# As Kubernetes spells numbers in names: no vowels, nothing that looks like another.
_SAFE_DIGITS: Final = str.maketrans("0123456789", "456789bcdf")


_COLLISIONS: Final = 4  # in a row, before the status tells of the first; one is rare enough

_NO_GENERATION: Final = Fault(
    f"metadata.annotations[{keys.TEMPLATE_GENERATION}]",
    "the API server did not write how often the template has changed; every change of the"
    " DaemonSet is compared instead",
)


class Revision(msgspec.Struct, frozen=True):
    """A template that was or is the target, stored or about to be."""

    name: str
    hash: str
    number: int
    template: bytes  # the raw JSON of the template
    uid: str = ""  # empty while it is not stored
    resource_version: str = ""
    from_hash: str | None = None  # what most pods carried when this became the target
    target_generation: int | None = None  # the generation at which it became the target

    @property
    def stored(self) -> bool:
        """Whether the API server has it; no pod may name it before."""
        return bool(self.uid)


class Choice(msgspec.Struct, frozen=True):
    """The target, and the writes that make it so. They come before any write of a pod."""

    target: Revision
    from_hash: str | None
    actions: tuple[RevisionAction, ...] = ()
    collision_count: int | None = None  # for the status
    duplicates: tuple[str, ...] = ()  # hashes of other revisions that mean the same
    faults: tuple[Fault, ...] = ()


def read_revision(stored: ControllerRevision, ds_uid: str = "") -> Revision | Fault:
    """A stored revision as we use it. What it recorded for another DaemonSet is forgotten."""
    meta = stored.metadata
    try:
        template = read_data(bytes(stored.data))
    except ValueError as error:
        return Fault(f"ControllerRevision {meta.name}: data", f"holds no pod template: {error}")
    text, _, owner = meta.annotations.get(keys.TARGET_GENERATION, "").partition("/")
    generation = read_number(text) if owner == ds_uid else None
    recorded = generation is not None
    return Revision(
        name=meta.name,
        hash=meta.labels.get(keys.REVISION_HASH) or _unlabelled(meta.name),
        number=stored.revision,
        template=template,
        uid=meta.uid,
        resource_version=meta.resource_version,
        from_hash=(meta.annotations.get(keys.FROM_REVISION) or None) if recorded else None,
        target_generation=generation,
    )


def choose_target(
    ds: DaemonSet,
    revisions: Sequence[Revision],
    carried: Mapping[str, int],
    *,
    taken: Collection[str] = (),
) -> Choice:
    """The revision that pods should run (rule R1).

    `carried` counts the own pods by the hash they carry. `taken` are names of revisions that
    turned out to belong to somebody else.
    """
    history = _History(ds, revisions, carried)
    standing = history.standing()
    if standing is not None and (standing.stored or standing.name not in taken):
        return history.keep(standing)
    matching = history.matching()
    if not matching:
        return history.create(taken)
    current = history.current()
    if current is not None and current in matching:
        return history.keep(current)
    return history.change(matching)


def prune(
    ds: DaemonSet, revisions: Sequence[Revision], live: Collection[str], *, target: Revision
) -> tuple[DeleteRevision, ...]:
    """The oldest revisions beyond the history limit; none that a pod carries or `from` names."""
    old = sorted((each for each in revisions if each.hash != target.hash), key=_age)
    excess = max(0, len(old) - ds.history_limit)
    spare = [each for each in old if each.hash not in live and each.hash != target.from_hash]
    return tuple(_delete(each) for each in spare[:excess] if each.stored)


def carries(pod: Pod, target: Revision) -> bool:
    """Whether the pod is at the target: by its hash, or by the template generation it was made at.

    The second holds for native pods only; it keeps them where another controller, or another
    version of one, named the same template differently.
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


def relabel(pod: Pod, choice: Choice) -> PatchPod | None:
    """Give the pod of a duplicate revision the hash of the one that was kept."""
    if pod.hash not in choice.duplicates or carries(pod, choice.target):
        return None
    labels = {keys.REVISION_HASH: choice.target.hash}
    return patch_pod(pod, Because.RELABEL, metadata={"labels": labels})


def revision_hash(template: bytes, collision_count: int | None) -> str:
    """A short name for a template, safe in labels and in names."""
    text = digest(template) + (b"" if collision_count is None else b"%d" % collision_count)
    number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")
    return str(number).translate(_SAFE_DIGITS)


@lru_cache(maxsize=256)
def digest(template: bytes) -> bytes:
    """Equal for two templates exactly when they mean the same."""
    return hashlib.blake2b(template_digest(normalise(template)), digest_size=16).digest()


def template_generation(ds: DaemonSet) -> int | None:
    """How often a native DaemonSet's template has changed; None for the other kind."""
    if ds.flavour is not Flavour.NATIVE:
        return None
    return read_number(ds.metadata.annotations.get(keys.TEMPLATE_GENERATION, ""))


def read_number(text: str) -> int | None:
    """The number that an annotation holds; None if it holds something else."""
    # More digits than an int64 has are no number of anything here, and slow to read.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


class _History:
    """The revisions of one DaemonSet while its target is chosen."""

    def __init__(
        self, ds: DaemonSet, revisions: Sequence[Revision], carried: Mapping[str, int]
    ) -> None:
        self.ds = ds
        self.carried = carried
        self.revisions = sorted(revisions, key=_age, reverse=True)  # newest first
        self.digest = digest(ds.template)
        self.native = ds.flavour is Flavour.NATIVE
        # What moves whenever the template may have changed.
        generation = template_generation(ds)
        self.generation = ds.metadata.generation if generation is None else generation

    def standing(self) -> Revision | None:
        """The target where the template cannot have changed since it was chosen."""
        if self.native:
            recorded = self._recorded()
            settled = recorded is not None and recorded.target_generation == self.generation
            return recorded if settled else None
        hash = self.ds.status.update_revision
        if self.ds.metadata.generation > self.ds.status.observed_generation or not hash:
            return None
        return self._by_hash(hash) or self._lost(hash)

    def current(self) -> Revision | None:
        """The target before the template changed, if it did."""
        recorded = self._recorded()
        if self.native or recorded is None:
            return recorded or self._by_hash(self.ds.status.update_revision)
        # The record is newer than a status that was not written before a crash.
        assert recorded.target_generation is not None
        if recorded.target_generation > self.ds.status.observed_generation:
            return recorded
        return self._by_hash(self.ds.status.update_revision) or recorded

    def matching(self) -> list[Revision]:
        """The revisions that mean what the template means, the most carried first."""
        same = [each for each in self.revisions if digest(each.template) == self.digest]
        return sorted(same, key=lambda each: -self.carried.get(each.hash, 0))

    def keep(self, target: Revision) -> Choice:
        """The target stays; what it does not record yet, it records now."""
        if not target.stored:
            return self._choice(target, (self._creation(target),))
        if target.target_generation is None:
            # Taken over from another controller in whatever state its rollout was.
            others = {h: n for h, n in self.carried.items() if h != target.hash}
            source = self._source(target, others) or self._source(target, self.carried)
            return self._record(target, from_hash=source)
        if self.native and target.target_generation != self.generation:
            return self._record(target, from_hash=target.from_hash)
        return self._choice(target)

    def change(self, matching: Sequence[Revision]) -> Choice:
        """An old revision becomes the target again, under the next number."""
        kept, *others = matching
        highest = max((each.number for each in self.revisions if each is not kept), default=0)
        gone = [each for each in others if not self.carried.get(each.hash)]
        merged = dict(self.carried)
        for each in others:
            merged[kept.hash] = merged.get(kept.hash, 0) + merged.pop(each.hash, 0)
        choice = self._record(
            kept, from_hash=self._source(kept, merged), number=max(kept.number, highest + 1)
        )
        deleted = tuple(_delete(each) for each in gone)
        return msgspec.structs.replace(choice, actions=(*choice.actions, *deleted))

    def create(self, taken: Collection[str]) -> Choice:
        """A template never seen before: a revision for it, under a name that is free."""
        count = self.ds.status.collision_count
        names = {each.name for each in self.revisions} | set(taken)
        while (name := f"{self.ds.name}-{revision_hash(self.ds.template, count)}") in names:
            count = (count or 0) + 1
        target = self._new(revision_hash(self.ds.template, count))
        target = msgspec.structs.replace(target, from_hash=self._source(target, self.carried))
        assert target.name == name
        return self._choice(target, (self._creation(target),), collision_count=count)

    def _recorded(self) -> Revision | None:
        """The revision that last became the target, by its own record."""
        recorded = [each for each in self.revisions if each.target_generation is not None]
        return max(recorded, key=lambda each: each.target_generation or 0, default=None)

    def _by_hash(self, hash: str) -> Revision | None:
        return next((each for each in self.revisions if each.hash == hash), None)

    def _lost(self, hash: str) -> Revision:
        """The revision that the status names and nobody has any more, made anew."""
        target = self._new(hash)
        others = {h: n for h, n in self.carried.items() if h != hash}
        source = self._source(target, others) or self._source(target, self.carried)
        return msgspec.structs.replace(target, from_hash=source)

    def _new(self, hash: str) -> Revision:
        return Revision(
            name=f"{self.ds.name}-{hash}",
            hash=hash,
            number=max((each.number for each in self.revisions), default=0) + 1,
            template=self.ds.template,
            target_generation=self.generation,
        )

    def _source(self, target: Revision, carried: Mapping[str, int]) -> str | None:
        """The revision that most pods carry; the newest of several, None without any pod."""
        known = [target, *(each for each in self.revisions if each.hash != target.hash)]
        counted = [each for each in known if carried.get(each.hash)]
        if not counted:
            # Pods whose revision nobody knows still say that this is no first installation.
            return target.hash if any(carried.values()) else None
        return min(counted, key=lambda each: (-carried[each.hash], -each.number, each.hash)).hash

    def _record(
        self, target: Revision, *, from_hash: str | None, number: int | None = None
    ) -> Choice:
        """Write onto the revision that it is the target, since when, and what it came from."""
        made = msgspec.structs.replace(
            target,
            from_hash=from_hash,
            target_generation=self.generation,
            number=target.number if number is None else number,
        )
        body: dict[str, Any] = {
            "metadata": {
                "annotations": {keys.FROM_REVISION: from_hash, **self._generation_note()},
                "uid": target.uid,
                "resourceVersion": target.resource_version,
            }
        }
        if made.number != target.number:
            body["revision"] = made.number
        return self._choice(made, (PatchRevision(target.name, target.uid, body),))

    def _generation_note(self) -> dict[str, str]:
        return {keys.TARGET_GENERATION: f"{self.generation}/{self.ds.uid}"}

    def _creation(self, target: Revision) -> CreateRevision:
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
            "data": msgspec.Raw(write_data(target.template, self.ds.flavour)),
            "revision": target.number,
        }
        return CreateRevision(target.name, body)

    def _collisions(self, target: Revision) -> int | None:
        """How often a name was taken, by what the status says and by what the hash is made of."""
        said = self.ds.status.collision_count
        counts = (said, *range((said or 0) + 1, (said or 0) + 1 + _COLLISIONS))
        made = (each for each in counts if revision_hash(target.template, each) == target.hash)
        return next(made, said)

    def _choice(
        self,
        target: Revision,
        actions: tuple[RevisionAction, ...] = (),
        *,
        collision_count: int | None = None,
    ) -> Choice:
        if collision_count is None:
            collision_count = self._collisions(target)
        meaning = digest(target.template)
        unnumbered = self.native and template_generation(self.ds) is None
        return Choice(
            target=target,
            from_hash=target.from_hash,
            actions=actions,
            collision_count=collision_count,
            duplicates=tuple(
                sorted(
                    each.hash
                    for each in self.revisions
                    if each.hash != target.hash and digest(each.template) == meaning
                )
            ),
            faults=(_NO_GENERATION,) if unnumbered else (),
        )


def _template_labels(template: bytes) -> dict[str, str]:
    metadata = msgspec.json.decode(template, type=dict[str, Any]).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _unlabelled(name: str) -> str:
    """The hash of a revision without the label: its name, if that fits into a label."""
    return name if len(name) <= 63 else name.rpartition("-")[2]


def _age(revision: Revision) -> tuple[int, str]:
    return revision.number, revision.name


def _delete(revision: Revision) -> DeleteRevision:
    return DeleteRevision(revision.name, revision.uid, revision.resource_version)
