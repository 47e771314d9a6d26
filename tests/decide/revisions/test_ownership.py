from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, LabelSelector, LabelSelectorRequirement
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.times import format_time
from everynode.decide.inplace.state import InPlaceState, write_state
from everynode.decide.revisions.ownership import (
    Claim,
    adopt_patch,
    adopt_revision_patch,
    claim,
    claim_revision,
    owner_reference,
    release_patch,
    restore_hash_patch,
)
from tests.support.samples import NOW, advanced, native, pod, template

KRUISE = advanced(template())
NATIVE = native(template())
DELETING = {"deletion_timestamp": datetime(2023, 1, 1, tzinfo=UTC)}


def owned_by(**owner: Any) -> Pod:
    reference = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "ds-uid",
        "controller": True,
    }
    return pod(metadata={"ownerReferences": [{**reference, **owner}]})


def orphan(**metadata: Any) -> Pod:
    return pod(metadata={"ownerReferences": [], **metadata})


@pytest.mark.parametrize(
    ("ds", "found", "expected"),
    [
        (KRUISE, owned_by(), Claim.OWN),
        (KRUISE, owned_by(apiVersion="apps.kruise.io/v1alpha1"), Claim.OWN),
        (KRUISE, owned_by(apiVersion="apps/v1"), Claim.IGNORE),
        (NATIVE, owned_by(apiVersion="apps/v1"), Claim.OWN),
        (NATIVE, owned_by(apiVersion="apps.kruise.io/v1beta1"), Claim.IGNORE),
        (KRUISE, owned_by(uid="other"), Claim.IGNORE),
        (KRUISE, owned_by(kind="StatefulSet"), Claim.IGNORE),
        (KRUISE, owned_by(controller=False, uid="other"), Claim.ADOPT),
        (KRUISE, orphan(), Claim.ADOPT),
        (KRUISE, orphan(labels={"app": "other"}), Claim.IGNORE),
        (KRUISE, orphan(namespace="elsewhere"), Claim.IGNORE),
        (KRUISE, orphan(deletionTimestamp=format_time(NOW)), Claim.IGNORE),
        (KRUISE, orphan(labels={"app": "agent", keys.PULL_POD_OWNER: "ds-uid"}), Claim.IGNORE),
        (KRUISE, pod(metadata={"labels": {"app": "other"}}), Claim.RELEASE),
        (advanced(template(), metadata=DELETING), orphan(), Claim.IGNORE),
        (advanced(template(), metadata=DELETING), pod(), Claim.OWN),
        (
            advanced(template(), metadata=DELETING),
            pod(metadata={"labels": {"app": "other"}}),
            Claim.OWN,
        ),
    ],
)
def test_a_pod_is_claimed_by_owner_and_selector(ds: DaemonSet, found: Pod, expected: Claim) -> None:
    assert claim(ds, found) is expected


def test_a_selector_that_selects_everything_adopts_nothing() -> None:
    everything = advanced(template(), selector=LabelSelector())
    assert claim(everything, orphan()) is Claim.IGNORE
    assert claim(everything, pod()) is Claim.OWN


def test_a_selector_that_makes_no_sense_moves_nothing() -> None:
    broken = LabelSelector({}, (LabelSelectorRequirement("app", "Like", ("agent",)),))
    assert claim(advanced(template(), selector=broken), orphan()) is Claim.IGNORE
    assert claim(advanced(template(), selector=broken), pod()) is Claim.OWN


def test_adoption_writes_one_controller_for_the_pod_that_was_looked_at() -> None:
    patch = adopt_patch(KRUISE, orphan())
    assert patch.merge == "strategic"
    assert patch.body == {
        "metadata": {
            "ownerReferences": [
                {
                    "apiVersion": "apps.kruise.io/v1beta1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": "ds-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "uid": "pod-uid",
            "resourceVersion": "42",
        }
    }
    (native_reference,) = adopt_patch(NATIVE, orphan()).body["metadata"]["ownerReferences"]
    assert native_reference["apiVersion"] == "apps/v1"


def test_release_removes_only_our_reference() -> None:
    body = release_patch(KRUISE, pod()).body
    assert body["metadata"]["ownerReferences"] == [{"$patch": "delete", "uid": "ds-uid"}]


@pytest.mark.parametrize(
    ("record", "made_of", "hash"),
    [
        (None, "old", "old"),
        (None, "", ""),
        (
            write_state(InPlaceState("new")),
            "old",
            "new",
        ),  # its name is still that of the old revision
        (write_state(InPlaceState("new")), "", "new"),
        (write_state(InPlaceState("")), "old", "old"),
        (write_state(InPlaceState("no label")), "old", "old"),
        ("unreadable", "old", "old"),
    ],
)
def test_a_pod_that_lost_its_hash_gets_that_of_its_last_update_in_place(
    record: str | None, made_of: str, hash: str
) -> None:
    noted = {} if record is None else {keys.INPLACE_STATE: record}
    found = pod(metadata={"labels": {"app": "agent"}, "annotations": noted})
    assert restore_hash_patch(found, made_of).body == {
        "metadata": {
            "labels": {keys.REVISION_HASH: hash},
            "uid": "pod-uid",
            "resourceVersion": "42",
        }
    }


def test_revisions_are_claimed_the_same_way() -> None:
    stored: dict[str, Any] = {
        "metadata": {
            "name": "agent-1",
            "namespace": "system",
            "uid": "r1",
            "resourceVersion": "3",
            "labels": {"app": "agent"},
        }
    }
    found = msgspec.convert(stored, ControllerRevision)
    assert claim_revision(KRUISE, found) is Claim.ADOPT
    patch = adopt_revision_patch(KRUISE, found)
    assert (patch.merge, patch.name, patch.uid) == ("strategic", "agent-1", "r1")
    assert patch.body["metadata"]["resourceVersion"] == "3"
    assert patch.body["metadata"]["ownerReferences"] == [owner_reference(KRUISE)]
