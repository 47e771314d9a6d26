from __future__ import annotations

import msgspec
import pytest

from everynode.api import types
from everynode.apiserver.schema.structs import struct_for


def test_every_type_has_a_struct_except_those_that_contain_themselves() -> None:
    without = [name for name in types.load() if types.load()[name].fields and not struct_for(name)]
    assert {name.rsplit(".", 1)[1] for name in without} == {
        "CustomResourceDefinition",
        "CustomResourceDefinitionSpec",
        "CustomResourceDefinitionVersion",
        "CustomResourceValidation",
        "JSONSchemaProps",
    }


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("io.k8s.api.coordination.v1.LeaseSpec", {"renewTime": "2026-01-01T00:00:00Z"}),
        ("io.k8s.api.core.v1.ContainerStateRunning", {"startedAt": "now"}),
        ("io.k8s.api.core.v1.Secret", {"data": {"a": "x"}}),
        ("io.k8s.api.core.v1.ResourceRequirements", {"limits": {"cpu": "much"}}),
        ("io.k8s.api.apps.v1.DaemonSetSpec", {"minReadySeconds": 2**31}),
        ("io.k8s.api.apps.v1.RollingUpdateDaemonSet", {"maxSurge": True}),
        ("io.k8s.api.core.v1.PodSpec", {"nothing": 1}),
    ],
)
def test_what_does_not_fit_is_refused(type_name: str, value: dict[str, object]) -> None:
    struct = struct_for(type_name)
    assert struct is not None
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, struct)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("io.k8s.api.coordination.v1.LeaseSpec", {"renewTime": "2026-01-01T00:00:00.000001Z"}),
        ("io.k8s.api.core.v1.ContainerStateRunning", {"startedAt": "2026-01-01T00:00:00+01:00"}),
        ("io.k8s.api.core.v1.Secret", {"data": {"a": "eA=="}}),
        ("io.k8s.api.core.v1.Secret", {"data": {"a": "eHh4\neHh4"}}),
        ("io.k8s.api.core.v1.ResourceRequirements", {"limits": {"cpu": "100m", "memory": 1}}),
        ("io.k8s.api.apps.v1.RollingUpdateDaemonSet", {"maxSurge": "10%", "maxUnavailable": 0}),
    ],
)
def test_what_fits_comes_back_as_it_was(type_name: str, value: dict[str, object]) -> None:
    struct = struct_for(type_name)
    assert struct is not None
    back = msgspec.to_builtins(msgspec.convert(value, struct))
    assert {key: back[key] for key in value} == value


def test_members_come_in_the_order_of_the_real_server() -> None:
    struct = struct_for("io.k8s.api.core.v1.ConfigMap")
    assert struct is not None
    sent = {"data": {"a": "b"}, "metadata": {}, "apiVersion": "v1", "kind": "ConfigMap"}
    back = msgspec.to_builtins(msgspec.convert(sent, struct))
    assert list(back) == ["kind", "apiVersion", "metadata", "data"]
