"""Server-side apply, compared with what a real API server made of the same requests."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from everynode.apiserver.apply.apply import ApplyConflict, ApplyError, apply
from everynode.apiserver.apply.managed_fields import Writer
from everynode.apiserver.errors import StatusError
from everynode.apiserver.schema.object_type import ObjectType
from tests.support.recorded_answers import GENERATION, TIME, steps

DAEMON_SET = "io.k8s.api.apps.v1.DaemonSet"

Object = dict[str, Any]


def differences(real: Any, ours: Any, path: str = "") -> list[str]:
    """Where ours says something the real one does not; defaults that only it has are not ours."""
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for key, value in ours.items():
            if key in ("managedFields", GENERATION):
                continue
            if key in real:
                found += differences(real[key], value, f"{path}.{key}")
            else:
                found.append(f"{path}.{key}")
        return found
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        pairs = enumerate(zip(real, ours, strict=True))
        return [text for i, (a, b) in pairs for text in differences(a, b, f"{path}[{i}]")]
    return [] if real == ours else [path]


@pytest.mark.parametrize(
    ("scenario", "step", "before"), steps(lambda step: bool(step["op"] == "apply"))
)
def test_applies_end_as_on_the_real_server(
    scenario: Object, step: Object, before: Object | None
) -> None:
    writer = Writer(step["manager"], scenario["apiVersion"], TIME, step.get("subresource", ""))

    def run() -> Object:
        return apply(
            before,
            step["body"],
            ObjectType(scenario["type"], scenario.get("schema")),
            writer,
            force=step.get("force", False),
        )

    if "error" in step:
        with pytest.raises(StatusError) as refused:
            run()
        assert refused.value.code == step["error"]["code"]
        assert refused.value.message == step["error"]["message"]
        assert (refused.value.details or {}).get("causes") == step["error"]["causes"]
        return
    result = run()
    assert differences(step["after"], result) == []
    assert result["metadata"].get("managedFields") == step["after"]["metadata"].get("managedFields")


def daemon_set(**spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "a1"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "a:1"}]},
            },
            **spec,
        },
    }


def applied(current: Object | None, obj: Object, *, manager: str = "m", time: str = TIME) -> Object:
    return apply(current, obj, ObjectType(DAEMON_SET), Writer(manager, "apps/v1", time))


def with_template(**spec: Any) -> Object:
    obj = daemon_set()
    obj["spec"]["template"]["spec"].update(spec)
    return obj


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (daemon_set(foo=3), ".spec.foo: field not declared in schema"),
        (
            daemon_set(minReadySeconds="x"),
            ".spec.minReadySeconds: expected numeric (int or float), got string",
        ),
        (
            with_template(containers=[{"name": "c"}, {"name": "c"}]),
            '.spec.template.spec.containers: duplicate entries for key [name="c"]',
        ),
        (
            with_template(containers={}),
            ".spec.template.spec.containers: expected list, got &{map[]}",
        ),
        (
            with_template(nodeSelector={"a": 3}),
            (
                ".spec.template.spec.nodeSelector.a: "
                "expected string, got &value.valueUnstructured{Value:3}"
            ),
        ),
        (
            with_template(hostNetwork="x"),
            ".spec.template.spec.hostNetwork: expected boolean, got &{x}",
        ),
        (daemon_set(template="x"), ".spec.template: expected map, got &{x}"),
    ],
)
def test_what_does_not_fit_the_kind_is_refused_in_the_server_s_words(
    obj: Object, message: str
) -> None:
    with pytest.raises(ApplyError) as refused:
        applied(None, obj)
    prefix = "failed to create typed patch object (/a1; apps/v1, Kind=DaemonSet): "
    assert (refused.value.code, refused.value.message) == (500, prefix + message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Foo"}, "invalid object type: apps/v1, Kind=Foo"),
        ({"apiVersion": "apps/v2"}, "invalid object type: apps/v2, Kind=DaemonSet"),
        ({"metadata": {"name": "a1", "managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_what_is_of_another_kind_is_a_bad_request(change: Object, message: str) -> None:
    with pytest.raises(ApplyError) as refused:
        applied(None, {**daemon_set(), **change})
    assert (refused.value.code, refused.value.message) == (400, message)


def test_neither_argument_is_changed() -> None:
    live = applied(None, with_template(volumes=[{"name": "v", "emptyDir": {}}]))
    sent = daemon_set(minReadySeconds=4)
    kept = copy.deepcopy((live, sent))
    applied(live, sent)
    assert (live, sent) == kept


def test_applying_the_same_again_changes_nothing() -> None:
    live = applied(None, daemon_set(minReadySeconds=4))
    assert applied(live, daemon_set(minReadySeconds=4), time="2027-01-01T00:00:00Z") == live


def test_a_conflict_names_the_owner_and_its_endpoint() -> None:
    owned = {
        "manager": "ctl",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:minReadySeconds": {}}},
        "subresource": "scale",
    }
    live = daemon_set(minReadySeconds=1)
    live["metadata"]["managedFields"] = [owned]
    with pytest.raises(ApplyConflict) as refused:
        applied(live, daemon_set(minReadySeconds=2))
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "ctl" with subresource "scale" '
        "using apps/v1: .spec.minReadySeconds"
    )


def test_a_value_that_its_type_cannot_hold_is_refused() -> None:
    limits = {"limits": {"cpu": "much"}}
    with pytest.raises(ApplyError) as refused:
        applied(None, with_template(containers=[{"name": "c", "image": "a", "resources": limits}]))
    prefix = "failed to convert new object (/a1; apps/v1, Kind=DaemonSet) to proper version"
    assert refused.value.message.startswith(f"{prefix}: unable to convert unstructured object")


def test_a_status_that_is_applied_to_the_main_resource_is_not_owned() -> None:
    obj = {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "t"}}
    schema = {"type": "object", "properties": {"status": {"type": "object"}}}
    result = apply(
        None,
        {**obj, "status": {"n": 1}},
        ObjectType(schema=schema),
        Writer("m", "example.test/v1", TIME),
    )
    assert "managedFields" not in result["metadata"]
