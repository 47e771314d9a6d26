"""Every field of a pod template, added, removed and changed: in place only if the pods are equal.

The fields come from the table of types. A pod is built from the old template and patched as the
embedded API server patches it; then it must mean the same as a pod that the new template creates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from everynode.api import keys
from everynode.api.defaults import default_pod
from everynode.api.template_equality import normalise
from everynode.api.types import INT_OR_STRING, POD, POD_TEMPLATE, FieldInfo, load
from everynode.apiserver.patches.strategic import merge
from everynode.decide.actions import PatchPod
from everynode.decide.inplace.diff import InPlaceChange, Recreate, classify
from everynode.decide.inplace.update import Done, next_step
from everynode.decide.pods.build import build_pod
from everynode.decide.revisions.target import Revision
from tests.support.samples import (
    NOW,
    Object,
    advanced,
    condition,
    container_status,
    read_pod,
    revision,
)

Path = tuple[str | int, ...]

BASE: Object = {
    "metadata": {"labels": {"app": "agent"}},
    "spec": {"containers": [{"name": "agent", "image": "registry.example/agent:1"}]},
}
# Names of map entries that have a meaning; all others are called "key".
MAP_KEYS = {"limits": "cpu", "requests": "cpu"}


def fields_of(type_name: str, path: Path = (), seen: tuple[str, ...] = ()) -> Iterator[Case]:
    for name, field in load()[type_name].fields.items():
        yield from cases_of(field, (*path, name), (*seen, type_name))


def cases_of(field: FieldInfo, path: Path, seen: tuple[str, ...]) -> Iterator[Case]:
    """Return two values for every field at or below this one."""
    if field.items is not None:
        yield from cases_of(field.items, (*path, 0), seen)
    elif field.values is not None:
        yield from cases_of(field.values, (*path, MAP_KEYS.get(str(path[-1]), "key")), seen)
    elif field.ref and field.ref not in seen and load()[field.ref].fields:
        yield from fields_of(field.ref, path, seen)
        yield Case(path, {}, {})
    elif field.type in ("integer", "number") or field.ref == INT_OR_STRING:
        yield Case(path, 1, 2)
    elif field.type == "boolean":
        yield Case(path, True, False)
    else:
        yield Case(path, "1", "2")


class Case(msgspec.Struct, frozen=True):
    path: Path
    one: Any
    other: Any

    @property
    def name(self) -> str:
        return ".".join(str(part) for part in self.path)

    def template(self, value: Any) -> bytes:
        return msgspec.json.encode(with_value(BASE, self.path, value))


def with_value(parent: Any, path: Path, value: Any) -> Any:
    """Return a copy of the parent that has the value at this path."""
    if not path:
        return value or parent or value  # an empty object replaces nothing
    part, rest = path[0], path[1:]
    if part == 0:
        # Without a name most items of lists would be malformed.
        first, *others = parent or [{"name": "x"}]
        return [with_value(first, rest, value), *others]
    known = parent or {}
    return {**known, part: with_value(known.get(part), rest, value)}


CASES = list(fields_of(POD_TEMPLATE))


def test_the_table_has_every_field() -> None:
    names = {case.name for case in CASES}
    assert len(names) > 1000
    assert {
        "metadata.labels.key",
        "spec.containers.0.image",
        "spec.containers.0.livenessProbe.httpGet.port",
        "spec.volumes.0.emptyDir.sizeLimit",
        "spec.hostNetwork",
    } <= names


def created(template: bytes, hash: str) -> Object:
    """Return the pod that a template creates, running."""
    made = build_pod(advanced(template), revision(template, hash), "n1")
    pod = default_pod(made)
    pod["metadata"].update(uid="pod-uid", resourceVersion="42")
    pod["spec"]["nodeName"] = "n1"
    gates = (each.get("conditionType", "") for each in pod["spec"]["readinessGates"])
    pod["status"] = {
        "phase": "Running",
        "conditions": [condition(kind) for kind in (keys.READY, keys.CONTAINERS_READY, *gates)],
    }
    report(pod)
    return pod


def report(pod: Object) -> None:
    """Report the containers as a kubelet that has brought them to the spec."""
    pod["status"]["containerStatuses"] = [
        container_status(
            each["name"],
            each.get("image", ""),
            containerID=f"containerd://{each.get('image', '')}",
            resources=each.get("resources", {}),
        )
        for each in pod["spec"]["containers"]
    ]


def updated(old: Revision, new: Revision) -> Object:
    """Return the pod of the old revision after its update in place."""
    pod = created(old.template, old.hash)
    for _ in range(10):
        step = next_step(read_pod(pod), old, new, now=NOW)
        if isinstance(step, Done):
            return pod
        assert isinstance(step, PatchPod), step
        pod = merge(pod, step.body, POD)
        report(pod)
    raise AssertionError("no end is in sight")


def meaning(pod: Object) -> Object:
    """Return what a pod got from its template."""
    metadata = pod["metadata"]
    kept = {
        "labels": metadata["labels"],
        "annotations": {
            key: value
            for key, value in metadata.get("annotations", {}).items()
            if key != keys.INPLACE_STATE
        },
        "finalizers": sorted(metadata.get("finalizers", [])),
    }
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return normalise({"metadata": kept, "spec": spec})


def updates_in_place(old: bytes, new: bytes) -> bool:
    """Check one change; return whether it is written to the pod."""
    change = classify(old, new)
    if isinstance(change, Recreate):
        return False
    before, after = revision(old, "old"), revision(new, "new")
    assert meaning(updated(before, after)) == meaning(created(new, "new"))
    return change != InPlaceChange()


METADATA = ["metadata.annotations.key", "metadata.finalizers.0", "metadata.labels.key"]


@pytest.mark.parametrize(
    ("kind", "in_place"),
    [
        ("added", METADATA),
        ("removed", METADATA),
        (
            "changed",
            [
                *METADATA,
                "spec.containers.0.image",
                "spec.containers.0.resources.limits.cpu",
                "spec.containers.0.resources.requests.cpu",
            ],
        ),
    ],
)
def test_an_update_in_place_gives_the_pod_that_the_template_creates(
    kind: str, in_place: list[str]
) -> None:
    plain = msgspec.json.encode(BASE)
    written = []
    for case in CASES:
        one, other = case.template(case.one), case.template(case.other)
        old, new = {"added": (plain, one), "removed": (one, plain), "changed": (one, other)}[kind]
        if old != new and updates_in_place(old, new):
            written.append(case.name)
    assert sorted(written) == in_place


def test_what_every_template_has_is_not_removed_in_place() -> None:
    plain = msgspec.json.encode(BASE)
    for field in ("image", "name"):
        bare: Object = msgspec.json.decode(plain)
        del bare["spec"]["containers"][0][field]
        assert isinstance(classify(plain, msgspec.json.encode(bare)), Recreate)
