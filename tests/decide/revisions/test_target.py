from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, DaemonSetStatus, FieldError
from everynode.api.objects import ControllerRevision
from everynode.decide.actions import CreateRevision, DeleteRevision, PatchRevision
from everynode.decide.revisions.target import (
    Revision,
    TargetChoice,
    choose_target,
    is_at_revision,
    prune_history,
    read_revision,
    relabel_patch,
    revision_hash,
)
from tests.support.samples import advanced, native, pod, revision, template, template_with

ONE = template_with(image="registry.example/agent:1")
TWO = template_with(image="registry.example/agent:2")
# The first again, in other words: defaults and empty fields written out, keys in another order.
ONE_SPELLED_OUT = msgspec.json.encode(
    {
        "spec": {
            "restartPolicy": "Always",
            "nodeSelector": {},
            "containers": [
                {
                    "image": "registry.example/agent:1",
                    "name": "agent",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {},
                }
            ],
        },
        "metadata": {"labels": {"app": "agent"}, "creationTimestamp": None},
    }
)


def kruise(template: bytes, *, generation: int, observed: int, hash: str = "aaa") -> DaemonSet:
    status = DaemonSetStatus(observed_generation=observed, update_revision=hash)
    return advanced(template, metadata={"generation": generation}, status=status)


def written(choice: TargetChoice) -> dict[str, Any]:
    """The body of the only revision that is created or patched."""
    (action,) = choice.actions
    assert isinstance(action, CreateRevision | PatchRevision)
    return action.body


def store(choice: TargetChoice, ds: DaemonSet) -> Revision:
    """The created revision as it is read back from the API server."""
    body = {**written(choice)}
    body["metadata"] = {**body["metadata"], "uid": "stored", "resourceVersion": "9"}
    read = msgspec.json.decode(msgspec.json.encode(body), type=ControllerRevision)
    made = read_revision(read, ds.uid)
    assert isinstance(made, Revision)
    return made


def made_of(stored: Revision, template: bytes) -> Revision:
    """A stored revision as the target: pods are made of the template of the spec."""
    return msgspec.structs.replace(stored, template=template)


# --- A first revision --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ds", [native(ONE), kruise(ONE, generation=1, observed=0, hash="")], ids=["native", "advanced"]
)
def test_a_new_daemonset_gets_its_first_revision(ds: DaemonSet) -> None:
    choice = choose_target(ds, [], {})
    assert not choice.target.stored
    assert choice.from_hash is None
    assert choice.target.number == 1
    body = written(choice)
    assert body["metadata"]["name"] == f"agent-{choice.target.hash}"
    assert body["metadata"]["namespace"] == "system"
    assert body["metadata"]["labels"] == {"app": "agent", keys.REVISION_HASH: choice.target.hash}
    (owner,) = body["metadata"]["ownerReferences"]
    assert owner["uid"] == "ds-uid"
    assert owner["controller"] is True


def test_a_revision_carries_the_annotations_of_its_daemonset() -> None:
    annotations = {"kubernetes.io/change-cause": "because", keys.LAST_APPLIED: "{}"}
    body = written(choose_target(native(ONE, metadata={"annotations": annotations}), [], {}))
    assert body["metadata"]["annotations"] == {
        **annotations,
        keys.TEMPLATE_GENERATION: "1",
        keys.TARGET_GENERATION: "1/ds-uid",
    }


@pytest.mark.parametrize("ds", [native(ONE), kruise(ONE, generation=1, observed=0, hash="")])
def test_a_stored_revision_stays_the_target_without_another_write(ds: DaemonSet) -> None:
    stored = store(choose_target(ds, [], {}), ds)
    again = choose_target(ds, [stored], {stored.hash: 3})
    assert again.target == made_of(stored, ONE)
    assert again.actions == ()


def test_hashes_are_made_of_safe_characters() -> None:
    found = revision_hash(ONE, None)
    assert len(found) <= 10
    assert set(found) <= set("456789bcdf")


def test_hashes_follow_the_meaning_and_the_collision_count() -> None:
    assert revision_hash(ONE, None) == revision_hash(ONE_SPELLED_OUT, None)
    assert len({revision_hash(ONE, None), revision_hash(ONE, 1), revision_hash(TWO, None)}) == 3


# --- When the template can have changed --------------------------------------------------------


def test_a_template_of_the_same_meaning_is_no_new_target() -> None:
    stored = revision(ONE, "aaa", target_generation=1)
    choice = choose_target(kruise(ONE_SPELLED_OUT, generation=2, observed=1), [stored], {"aaa": 5})
    assert choice.target == made_of(stored, ONE_SPELLED_OUT)
    assert choice.actions == ()


def test_a_new_template_becomes_the_target_and_remembers_where_it_came_from() -> None:
    stored = revision(ONE, "aaa", target_generation=1, number=4)
    choice = choose_target(kruise(TWO, generation=2, observed=1), [stored], {"aaa": 5})
    assert choice.target.number == 5
    assert choice.from_hash == "aaa"
    annotations = written(choice)["metadata"]["annotations"]
    assert annotations[keys.FROM_REVISION] == "aaa"
    assert annotations[keys.TARGET_GENERATION] == "2/ds-uid"


def test_an_observed_template_is_not_compared_again() -> None:
    # Whatever the template looks like: its generation was seen, and the status names the target.
    stored = [revision(ONE, "aaa", target_generation=1), revision(TWO, "bbb", number=2)]
    choice = choose_target(kruise(TWO, generation=3, observed=3), stored, {"aaa": 5})
    assert choice.target.hash == "aaa"
    assert choice.actions == ()


def test_an_observed_generation_above_the_generation_hides_no_template() -> None:
    # Restored from a backup, for instance: generations begin again, the status does not.
    stored = revision(ONE, "aaa", target_generation=1)
    choice = choose_target(kruise(TWO, generation=2, observed=57), [stored], {"aaa": 5})
    assert isinstance(choice.actions[0], CreateRevision)
    assert choice.from_hash == "aaa"
    # Until the status is written, which may take a while, the revision's record counts.
    recorded = revision(TWO, "bbb", number=2, target_generation=2, from_hash="aaa")
    again = choose_target(kruise(TWO, generation=2, observed=57), [stored, recorded], {"aaa": 5})
    assert (again.target.hash, again.actions) == ("bbb", ())


def test_a_native_template_is_compared_only_when_its_generation_moved() -> None:
    stored = [revision(ONE, "aaa", target_generation=7), revision(TWO, "bbb", number=2)]
    same = choose_target(native(TWO, template_generation=7), stored, {})
    assert (same.target.hash, same.actions) == ("aaa", ())
    moved = choose_target(native(TWO, template_generation=8), stored, {"aaa": 1})
    assert moved.target.hash == "bbb"
    assert moved.from_hash == "aaa"


def test_a_native_generation_that_moved_without_meaning_is_recorded() -> None:
    stored = revision(ONE, "aaa", target_generation=7, from_hash="zzz")
    choice = choose_target(native(ONE_SPELLED_OUT, template_generation=8), [stored], {"aaa": 1})
    assert (choice.target.hash, choice.from_hash) == ("aaa", "zzz")
    body = written(choice)
    assert body["metadata"]["annotations"][keys.TARGET_GENERATION] == "8/ds-uid"
    assert "revision" not in body


def test_a_change_that_was_recorded_before_a_crash_is_not_recorded_again() -> None:
    # The new target was stored, some pods were made, the status was not written; then the
    # partition changed. `from` must not become what those pods carry.
    stored = [
        revision(ONE, "aaa", target_generation=1),
        revision(TWO, "bbb", number=2, target_generation=2, from_hash="aaa"),
    ]
    choice = choose_target(kruise(TWO, generation=3, observed=1), stored, {"aaa": 1, "bbb": 9})
    assert (choice.target.hash, choice.from_hash) == ("bbb", "aaa")
    assert choice.actions == ()


def test_a_lost_revision_is_made_anew_under_its_hash() -> None:
    old = revision(ONE, "aaa")
    choice = choose_target(
        kruise(TWO, generation=3, observed=3, hash="bbb"), [old], {"bbb": 9, "aaa": 2}
    )
    assert choice.target.hash == "bbb"
    assert choice.target.number == 2
    assert written(choice)["metadata"]["name"] == "agent-bbb"
    assert choice.from_hash == "aaa"


def test_a_lost_revision_whose_name_is_taken_gets_another() -> None:
    ds = kruise(TWO, generation=3, observed=3, hash="bbb")
    choice = choose_target(ds, [], {"bbb": 9}, taken=("agent-bbb",))
    assert choice.target.hash == revision_hash(TWO, None)


# --- Taking over -------------------------------------------------------------------------------


def test_taking_over_from_kube_controller_manager_restarts_nothing() -> None:
    # Its revisions record nothing of ours; A was rolled back to, so its number is the highest.
    theirs = [revision(ONE, "aaa", number=3), revision(TWO, "bbb", number=2)]
    choice = choose_target(native(ONE_SPELLED_OUT, template_generation=3), theirs, {"aaa": 8})
    assert choice.target.hash == "aaa"
    assert choice.target.number == 3
    body = written(choice)
    assert body["metadata"]["annotations"] == {
        keys.FROM_REVISION: "aaa",
        keys.TARGET_GENERATION: "3/ds-uid",
    }
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["uid"] == "uid-aaa"


def test_taking_over_a_canary_remembers_what_the_held_nodes_run() -> None:
    theirs = [revision(ONE, "aaa"), revision(TWO, "bbb", number=2)]
    ds = kruise(TWO, generation=4, observed=4, hash="bbb")
    choice = choose_target(ds, theirs, {"aaa": 1, "bbb": 9})
    assert (choice.target.hash, choice.from_hash) == ("bbb", "aaa")
    assert choice.target.target_generation == 4


def test_taking_over_a_finished_rollout_comes_from_itself() -> None:
    ds = kruise(TWO, generation=4, observed=4, hash="bbb")
    choice = choose_target(ds, [revision(TWO, "bbb")], {"bbb": 9})
    assert choice.from_hash == "bbb"


def test_what_was_recorded_for_another_daemonset_is_forgotten() -> None:
    # The set was deleted with its pods left, and made again: generations start from one.
    stored = ControllerRevision(
        metadata=msgspec.convert(
            {
                "name": "agent-aaa",
                "labels": {keys.REVISION_HASH: "aaa"},
                "annotations": {keys.TARGET_GENERATION: "1/former", keys.FROM_REVISION: "zzz"},
            },
            type(advanced(ONE).metadata),
        ),
        revision=1,
        data=msgspec.Raw(b'{"spec":{"template":' + ONE + b"}}"),
    )
    read = read_revision(stored, "ds-uid")
    assert isinstance(read, Revision)
    assert (read.target_generation, read.from_hash) == (None, None)
    assert choose_target(native(TWO), [read], {"aaa": 1}).target.hash != "aaa"


# --- Rolling back, duplicates, collisions ------------------------------------------------------


def test_a_rollback_renumbers_the_old_revision() -> None:
    stored = [
        revision(ONE, "aaa", number=1, target_generation=1),
        revision(TWO, "bbb", number=2, target_generation=2),
    ]
    choice = choose_target(
        kruise(ONE, generation=3, observed=2, hash="bbb"), stored, {"aaa": 3, "bbb": 7}
    )
    assert (choice.target.hash, choice.target.number) == ("aaa", 3)
    assert choice.from_hash == "bbb"
    assert written(choice)["revision"] == 3


def test_a_rollback_early_in_a_canary_comes_from_itself() -> None:
    stored = [revision(ONE, "aaa"), revision(TWO, "bbb", number=2, target_generation=2)]
    ds = kruise(ONE, generation=3, observed=2, hash="bbb")
    assert choose_target(ds, stored, {"aaa": 7, "bbb": 3}).from_hash == "aaa"


def test_duplicates_are_merged_when_the_target_changes() -> None:
    stored = [
        revision(ONE, "aaa", number=1),
        revision(ONE_SPELLED_OUT, "a2", number=2),
        revision(ONE, "a3", number=3),
        revision(TWO, "bbb", number=4, target_generation=2),
    ]
    ds = kruise(ONE, generation=3, observed=2, hash="bbb")
    choice = choose_target(ds, stored, {"aaa": 6, "a2": 1, "bbb": 2})
    assert (choice.target.hash, choice.target.number) == ("aaa", 5)
    assert choice.from_hash == "aaa"
    assert choice.duplicates == ("a2", "a3")
    patched, deleted = choice.actions
    assert isinstance(patched, PatchRevision)
    # The other duplicate still has a pod.
    assert deleted == DeleteRevision("agent-a3", "uid-a3", "7")


def test_a_duplicate_that_appears_changes_nothing() -> None:
    stored = [revision(ONE, "aaa", target_generation=1), revision(ONE, "copy", number=2)]
    for ds in (native(ONE), kruise(ONE, generation=1, observed=1)):
        choice = choose_target(ds, stored, {"aaa": 5})
        assert (choice.target.hash, choice.actions) == ("aaa", ())


def test_a_native_copy_replaces_a_lost_target() -> None:
    # The conformance test of ControllerRevisions copies the only one and deletes the original.
    choice = choose_target(native(ONE), [revision(ONE, "copy", number=2)], {"aaa": 5})
    assert (choice.target.hash, choice.target.number) == ("copy", 2)
    old = pod("aaa", labels={keys.POD_TEMPLATE_GENERATION: "1"}, metadata={"ownerReferences": []})
    assert is_at_revision(old, choice.target)


@pytest.mark.parametrize(
    ("hash", "generation", "group", "updated"),
    [
        ("aaa", None, "apps", True),
        ("bbb", None, "apps", False),
        ("bbb", "3", "apps", True),
        ("bbb", "2", "apps", False),
        # A label that leaked into OpenKruise's kind is ignored: it never counts up there.
        ("bbb", "3", "apps.kruise.io", False),
    ],
)
def test_a_pod_is_at_the_target_by_hash_or_natively_by_template_generation(
    hash: str, generation: str | None, group: str, updated: bool
) -> None:
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "ds-uid", "controller": True}
    found = pod(
        hash,
        labels={keys.POD_TEMPLATE_GENERATION: generation} if generation else {},
        metadata={"ownerReferences": [{"apiVersion": f"{group}/v1", **owner}]},
    )
    assert is_at_revision(found, revision(ONE, "aaa", target_generation=3)) is updated


def test_only_pods_of_duplicates_are_relabelled() -> None:
    choice = TargetChoice(revision(ONE, "aaa"), None, duplicates=("a2",))
    patch = relabel_patch(pod("a2"), choice)
    assert patch is not None
    assert patch.body["metadata"]["labels"] == {keys.REVISION_HASH: "aaa"}
    assert relabel_patch(pod("aaa"), choice) is None
    assert relabel_patch(pod("bbb"), choice) is None


def test_a_native_pod_that_counts_as_updated_is_not_relabelled() -> None:
    choice = TargetChoice(revision(ONE, "aaa", target_generation=3), None, duplicates=("a2",))
    native_pod = {
        "labels": {keys.POD_TEMPLATE_GENERATION: "3"},
        "metadata": {"ownerReferences": []},
    }
    assert relabel_patch(pod("a2", **native_pod), choice) is None


def test_a_name_that_means_something_else_is_a_collision() -> None:
    first = revision_hash(TWO, None)
    stored = revision(ONE, first, target_generation=1)
    choice = choose_target(kruise(TWO, generation=2, observed=1, hash=first), [stored], {first: 1})
    assert choice.collision_count == 1
    assert choice.target.hash == revision_hash(TWO, 1)


def test_a_name_that_a_foreign_revision_holds_is_a_collision_too() -> None:
    taken = (f"agent-{revision_hash(ONE, None)}", f"agent-{revision_hash(ONE, 1)}")
    choice = choose_target(native(ONE), [], {}, taken=taken)
    assert choice.collision_count == 2


def test_the_collision_count_is_told_until_the_status_has_it() -> None:
    collided = revision_hash(ONE, 2)
    ds = kruise(ONE, generation=1, observed=1, hash=collided)
    choice = choose_target(ds, [revision(ONE, collided, target_generation=1)], {})
    assert choice.collision_count == 2
    theirs = kruise(ONE, generation=1, observed=1, hash="5f8d")
    choice = choose_target(theirs, [revision(ONE, "5f8d", target_generation=1)], {})
    assert choice.collision_count is None


def test_the_collision_count_of_the_status_is_kept() -> None:
    ds = advanced(TWO, metadata={"generation": 2}, status=DaemonSetStatus(1, collision_count=4))
    choice = choose_target(ds, [revision(ONE, "aaa")], {})
    assert choice.collision_count == 4
    assert choice.target.hash == revision_hash(TWO, 4)


@pytest.mark.parametrize("broken", [b"{}", b'{"metadata":"x"}', b'{"metadata":{"labels":[]}}'])
def test_a_malformed_template_still_gets_a_revision(broken: bytes) -> None:
    for ds in (native(broken), kruise(broken, generation=1, observed=0, hash="")):
        body = written(choose_target(ds, [], {}))
        assert list(body["metadata"]["labels"]) == [keys.REVISION_HASH]


def test_a_native_daemonset_without_its_template_generation_is_named_and_works() -> None:
    ds = native(ONE, metadata={"generation": 4, "annotations": {keys.TEMPLATE_GENERATION: "?"}})
    choice = choose_target(ds, [], {})
    assert keys.TEMPLATE_GENERATION in choice.faults[0].path
    stored = store(choice, ds)
    assert choose_target(ds, [stored], {}).actions == ()
    moved = native(TWO, metadata={"generation": 5, "annotations": {keys.TEMPLATE_GENERATION: "?"}})
    assert choose_target(moved, [stored], {}).target.hash != stored.hash


# --- From --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("carried", "expected"),
    [
        ({}, None),
        ({"aaa": 1}, "aaa"),
        ({"aaa": 1, "bbb": 2}, "bbb"),
        ({"aaa": 2, "bbb": 2}, "bbb"),  # the newer of two
        ({"aaa": 1, "gone": 9}, "aaa"),  # no pod can be made from a deleted revision
        ({"gone": 9}, "itself"),  # yet it is no first installation
    ],
)
def test_from_is_what_most_pods_carried(carried: dict[str, int], expected: str | None) -> None:
    stored = [revision(ONE, "aaa"), revision(TWO, "bbb", number=2, target_generation=2)]
    ds = kruise(template(hostPID=True), generation=3, observed=2, hash="bbb")
    choice = choose_target(ds, stored, carried)
    assert choice.from_hash == (choice.target.hash if expected == "itself" else expected)


# --- Reading and pruning -----------------------------------------------------------------------


def test_data_without_a_template_is_a_fault_with_the_name_of_the_revision() -> None:
    broken = msgspec.convert({"metadata": {"name": "agent-x"}}, ControllerRevision)
    fault = read_revision(broken)
    assert isinstance(fault, FieldError)
    assert "agent-x" in fault.path


def test_a_revision_without_a_hash_goes_by_its_name() -> None:
    data = msgspec.Raw(b'{"spec":{"template":{}}}')
    for name, expected in (("agent-x", "agent-x"), ("a" * 70 + "-x", "x")):
        meta = msgspec.convert({"name": name}, type(advanced(ONE).metadata))
        read = read_revision(ControllerRevision(metadata=meta, data=data))
        assert isinstance(read, Revision)
        assert read.hash == expected


@pytest.mark.parametrize("noted", ["", "x/ds-uid", "-1/ds-uid", "9" * 5000 + "/ds-uid", "1"])
def test_a_malformed_record_is_no_record(noted: str) -> None:
    meta = {"name": "agent-x", "annotations": {keys.TARGET_GENERATION: noted}}
    stored = ControllerRevision(
        metadata=msgspec.convert(meta, type(advanced(ONE).metadata)),
        data=msgspec.Raw(b'{"spec":{"template":{}}}'),
    )
    read = read_revision(stored, "ds-uid")
    assert isinstance(read, Revision)
    assert read.target_generation is None


def history(count: int) -> list[Revision]:
    return [revision(template(hostname=f"h{n}"), f"r{n}", number=n) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("limit", "live", "gone"),
    [
        (10, [], []),
        (2, [], ["r1", "r2"]),
        (2, ["r1"], ["r2", "r3"]),
        (0, ["r2"], ["r1", "r3"]),  # r4 is where the target came from
        (4, [], []),
    ],
)
def test_history_keeps_the_limit_and_whatever_is_in_use(
    limit: int, live: list[str], gone: list[str]
) -> None:
    revisions = history(5)
    target = msgspec.structs.replace(revisions[4], from_hash="r4")
    ds = advanced(target.template, history_limit=limit)
    deleted = prune_history(ds, [*revisions[:4], target], live, target=target)
    assert [each.name for each in deleted] == [f"agent-{hash}" for hash in gone]


def test_the_revision_before_a_complete_target_is_not_kept_beyond_the_limit() -> None:
    before, target = history(2)
    ds = advanced(target.template, history_limit=0)
    came = msgspec.structs.replace(target, from_hash=before.hash)
    assert prune_history(ds, [before, came], [], target=came) == ()
    complete = msgspec.structs.replace(came, completed=True)
    (deleted,) = prune_history(ds, [before, complete], [], target=complete)
    assert deleted.name == before.name
    assert prune_history(ds, [before, complete], [before.hash], target=complete) == ()


def test_the_target_does_not_count_for_the_limit() -> None:
    revisions = history(3)
    ds = advanced(revisions[0].template, history_limit=2)
    assert prune_history(ds, revisions, [], target=revisions[0]) == ()


@given(
    st.permutations(history(4)),
    st.dictionaries(st.sampled_from(["r1", "r2", "r9"]), st.integers(0, 3)),
)
def test_the_choice_does_not_depend_on_the_order_of_the_input(
    revisions: list[Revision], carried: dict[str, int]
) -> None:
    ds = kruise(ONE, generation=2, observed=1, hash="r4")
    backwards = dict(reversed(carried.items()))
    expected = choose_target(ds, history(4), carried)
    assert choose_target(ds, revisions, backwards) == expected


@given(st.lists(st.sampled_from([ONE, TWO, ONE_SPELLED_OUT, template(hostPID=True)]), max_size=8))
def test_numbers_only_grow_and_no_meaning_is_stored_twice(changes: list[bytes]) -> None:
    stored: dict[str, Revision] = {}
    highest = 0
    current = ""
    for generation, wanted in enumerate(changes, start=1):
        ds = kruise(wanted, generation=generation, observed=generation - 1, hash=current)
        choice = choose_target(ds, list(stored.values()), {current: 3} if current else {})
        assert choice.target.number >= highest
        if choice.target.hash != current:
            assert choice.target.number > highest
        highest, current = choice.target.number, choice.target.hash
        stored[current] = msgspec.structs.replace(choice.target, uid="u")
    assert len(stored) <= 3
