from __future__ import annotations

import msgspec

from everynode.api import keys
from everynode.api.objects import ControllerRevision, ObjectMeta
from everynode.decide.actions import PatchRevision
from everynode.decide.revisions.completion import completion_note
from everynode.decide.revisions.target import Revision, choose_target, read_revision
from tests.support.samples import advanced, native, revision, template_with

ONE = template_with(image="registry.example/agent:1")
TWO = template_with(image="registry.example/agent:2")
OURS = {keys.TARGET_GENERATION: "3/ds-uid", keys.COMPLETED: "3/ds-uid"}


def test_completion_is_noted_on_the_revision_as_it_was_observed() -> None:
    ds = advanced(ONE, metadata={"generation": 3})
    note = completion_note(ds, revision(ONE, "aaa", target_generation=3))
    assert note is not None
    metadata = note.body["metadata"]
    assert metadata["annotations"] == {keys.COMPLETED: f"3/{ds.uid}"}
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-aaa", "7")


def test_it_is_noted_once_and_only_on_a_stored_revision() -> None:
    ds = advanced(ONE)
    assert completion_note(ds, revision(ONE, completed=True)) is None
    assert completion_note(ds, revision(ONE, uid="")) is None


def read(annotations: dict[str, str]) -> Revision:
    meta = ObjectMeta(name="agent-aaa", uid="uid-aaa", annotations=annotations)
    data = msgspec.Raw(b'{"spec":{"template":' + ONE + b"}}")
    found = read_revision(ControllerRevision(metadata=meta, data=data), "ds-uid")
    assert isinstance(found, Revision)
    return found


def test_the_note_of_another_daemonset_does_not_count() -> None:
    assert read(OURS).completed
    assert not read({**OURS, keys.COMPLETED: "3/another"}).completed
    assert not read({**OURS, keys.COMPLETED: "true"}).completed


def test_a_revision_that_is_the_target_again_is_not_complete_yet() -> None:
    stored = [
        revision(ONE, "aaa", target_generation=1, completed=True),
        revision(TWO, "bbb", number=2, target_generation=2, completed=True),
    ]
    ds = advanced(ONE, metadata={"generation": 3})
    choice = choose_target(ds, stored, {"bbb": 5})
    (action,) = choice.actions
    assert isinstance(action, PatchRevision)
    assert action.body["metadata"]["annotations"][keys.COMPLETED] is None
    assert (choice.target.hash, choice.target.completed, choice.from_hash) == ("aaa", False, "bbb")


def test_a_native_generation_that_moved_without_meaning_keeps_the_note() -> None:
    stored = revision(ONE, "aaa", target_generation=7, completed=True)
    choice = choose_target(native(ONE, template_generation=8), [stored], {"aaa": 1})
    (action,) = choice.actions
    assert isinstance(action, PatchRevision)
    assert keys.COMPLETED not in action.body["metadata"]["annotations"]
    assert choice.target.completed
