"""S9: an in-place update keeps the pod, closes its gate first, and changes only what it may."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Container, Pod
from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.referee import gate_closed, is_in_place_done, meaning, template_in
from everynode.sim.invariants.views import owner_uid
from everynode.sim.record import Commit

_state_of: Final = msgspec.json.Decoder(dict[str, Any]).decode


class InPlace(Invariant):
    """What we change in pods that go on living."""

    id: ClassVar[str] = "S9"
    title: ClassVar[str] = "in place: the gate first, then images and resources alone"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at a pod that was changed."""
        if commit.type != "MODIFIED":
            return
        before, after = commit.before, commit.after
        if gate_closed(before) and not gate_closed(after) and not is_in_place_done(before):
            yield f"{after.name}: its gate was opened before its containers took the change"
        if after.terminating and gate_closed(after) and not gate_closed(before):
            yield f"{after.name}: taken out of service while it was being deleted"
        if before.hash != after.hash and self._differ(before, after):
            yield f"{after.name}: its revision differs from the one before in more than images"
        if before.spec.containers == after.spec.containers:
            return
        if _bare(before) != _bare(after):
            yield f"{after.name}: more than images and resources changed"
        images = [each.image for each in before.spec.containers]
        gated = any(
            g.condition_type == keys.INPLACE_UPDATE_READY for g in after.spec.readiness_gates
        )
        if images != [each.image for each in after.spec.containers]:
            if gated and not gate_closed(before):
                yield f"{after.name}: its image was changed while its gate was open"
            if after.hash == before.hash and not _promised(before):
                yield f"{after.name}: its image was changed and its revision was not"
        if after.terminating:
            yield f"{after.name}: changed in place while it was being deleted"

    def _differ(self, before: Pod, after: Pod) -> bool:
        """Whether the two revisions differ in what only a new pod can take over."""
        found = {
            revision.metadata.labels.get(keys.REVISION_HASH): template_in(bytes(revision.data))
            for revision in self.record.scene.revisions.values()
            if revision.metadata.controller is not None
            and revision.metadata.controller.uid == owner_uid(after)
        }
        old, new = found.get(before.hash), found.get(after.hash)
        return old is not None and new is not None and _fixed(old) != _fixed(new)


@lru_cache(maxsize=256)
def _fixed(template: bytes) -> dict[str, Any]:
    """A template without what may change in place."""
    made: dict[str, Any] = msgspec.json.decode(meaning(template))
    made.pop("metadata", None)
    for each in made.get("spec", {}).get("containers", ()):
        each.update(image="", imagePullPolicy="", resources={})
    return made


def _promised(pod: Pod) -> bool:
    """Whether the resize that came first said that images follow."""
    state = _state_of(pod.metadata.annotations.inplace_state or "{}")
    return bool(state.get("nextContainerImages"))


def _bare(pod: Pod) -> list[Container]:
    return [
        msgspec.structs.replace(c, image="", resources=type(c.resources)())
        for c in pod.spec.containers
    ]
