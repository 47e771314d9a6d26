"""S9: an in-place update keeps the pod, closes its gate first, and changes only allowed fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from everynode.api import keys
from everynode.api.objects import Container, Pod
from everynode.sim.checks.check import Check
from everynode.sim.checks.inplace_progress import gate_closed, is_in_place_done
from everynode.sim.checks.oracle import canonical_template, revision_template, template_containers
from everynode.sim.checks.possible_views import owner_uid
from everynode.sim.history.record import Commit

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class InPlace(Check):
    """Checks what controllers change in pods that are updated in place."""

    id: ClassVar[str] = "S9"
    title: ClassVar[str] = "in place: the gate first, then images and resources alone"
    kinds: ClassVar[tuple[str, ...]] = ("pods",)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check a pod that was changed."""
        if commit.type != "MODIFIED":
            return
        before, after = commit.before, commit.after
        for is_wrong, message in _RULES:
            if is_wrong(before, after):
                yield f"{after.name}: {message}"
        if before.hash != after.hash:
            for message in self._revision_faults(before, after):
                yield f"{after.name}: {message}"

    def _revision_faults(self, before: Pod, after: Pod) -> Iterable[str]:
        """What is wrong with a pod that was brought to another revision."""
        found = {
            revision.metadata.labels.get(keys.REVISION_HASH): revision_template(
                bytes(revision.data)
            )
            for revision in self.record.cluster.revisions.values()
            if revision.metadata.controller is not None
            and revision.metadata.controller.uid == owner_uid(after)
        }
        old, new = found.get(before.hash), found.get(after.hash)
        if old is None or new is None:
            return
        if _fixed_fields(old) != _fixed_fields(new):
            yield "its revision differs from the one before in more than images"
        asked = _metadata(new, "annotations").get(keys.RESTARTED_AT)
        if asked not in (None, _metadata(old, "annotations").get(keys.RESTARTED_AT)):
            yield "its revision asks for a restart, and the pod goes on"
        next_images = _state(after).get("nextContainerImages") or {}
        running = {
            each.name: next_images.get(each.name, each.image) for each in after.spec.containers
        }
        if running != {name: image for name, (image, _) in template_containers(new).items()}:
            yield "it has the hash of a revision whose images it does not get"
        was, wanted = _metadata(old, "labels"), _metadata(new, "labels")
        for key in sorted({**was, **wanted}):
            if was.get(key) != wanted.get(key) != after.metadata.labels.get(key):
                yield f"its revision has another label {key}"


@lru_cache(maxsize=256)
def _fixed_fields(template: bytes) -> dict[str, Any]:
    """A template without the fields that may change in place."""
    decoded: dict[str, Any] = msgspec.json.decode(canonical_template(template))
    decoded.pop("metadata", None)
    for each in decoded.get("spec", {}).get("containers", ()):
        each.update(image="", resources={})
    return decoded


def _metadata(template: bytes, kind: str) -> dict[str, str]:
    found: dict[str, str] = (_decode(template).get("metadata") or {}).get(kind) or {}
    return found


def _state(pod: Pod) -> dict[str, Any]:
    return _decode(pod.metadata.annotations.inplace_state or "{}")


def _has_next_images(pod: Pod) -> bool:
    """Whether the resize that came first recorded that image changes follow."""
    return bool(_state(pod).get("nextContainerImages"))


def _bare(pod: Pod) -> list[Container]:
    return [
        msgspec.structs.replace(c, image="", resources=type(c.resources)())
        for c in pod.spec.containers
    ]


# --- The rules: what must not hold for a pod before and after a write --------------------------


def _images_changed(before: Pod, after: Pod) -> bool:
    old, new = before.spec.containers, after.spec.containers
    return [each.image for each in old] != [each.image for each in new]


def _gate_opened_early(before: Pod, after: Pod) -> bool:
    opened = gate_closed(before) and not gate_closed(after)
    return opened and not is_in_place_done(before)


def _gate_closed_while_terminating(before: Pod, after: Pod) -> bool:
    return after.terminating and gate_closed(after) and not gate_closed(before)


def _other_fields_changed(before: Pod, after: Pod) -> bool:
    return before.spec.containers != after.spec.containers and _bare(before) != _bare(after)


def _image_changed_with_open_gate(before: Pod, after: Pod) -> bool:
    gates = [gate.condition_type for gate in after.spec.readiness_gates]
    gated = keys.INPLACE_UPDATE_READY in gates
    return _images_changed(before, after) and gated and not gate_closed(before)


def _image_changed_without_revision(before: Pod, after: Pod) -> bool:
    same = after.hash == before.hash
    return _images_changed(before, after) and same and not _has_next_images(before)


def _changed_while_terminating(before: Pod, after: Pod) -> bool:
    return after.terminating and before.spec.containers != after.spec.containers


_RULES: Final[tuple[tuple[Callable[[Pod, Pod], bool], str], ...]] = (
    (_gate_opened_early, "its gate was opened before its containers took the change"),
    (_gate_closed_while_terminating, "taken out of service while it was being deleted"),
    (_other_fields_changed, "more than images and resources changed"),
    (_image_changed_with_open_gate, "its image was changed while its gate was open"),
    (_image_changed_without_revision, "its image was changed and its revision was not"),
    (_changed_while_terminating, "changed in place while it was being deleted"),
)
