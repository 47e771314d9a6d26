from __future__ import annotations

from typing import Any

import pytest

from everynode.apiserver.schema.type_errors import first_conversion_error, first_type_error

POD = "io.k8s.api.core.v1.Pod"
SECRET = "io.k8s.api.core.v1.Secret"
LEASE = "io.k8s.api.coordination.v1.Lease"


@pytest.mark.parametrize(
    ("type_name", "obj", "end"),
    [
        (POD, {"spec": 3}, "number into Go struct field Pod.spec of type v1.PodSpec"),
        (POD, {"spec": {"volumes": {}}}, "field PodSpec.spec.volumes of type []v1.Volume"),
        (POD, {"spec": {"volumes": [3]}}, "field PodSpec.spec.volumes of type v1.Volume"),
        (POD, {"spec": {"nodeSelector": []}}, "of type map[string]string"),
        (POD, {"spec": {"nodeSelector": {"a": 1}}}, "PodSpec.spec.nodeSelector of type string"),
        (POD, {"spec": {"priority": 1.5}}, ("unmarshal number 1.5 into Go struct field "
         "PodSpec.spec.priority of type int32")),
        (POD, {"spec": {"priority": 2**40}}, (f"number {2**40} into Go struct field "
         "PodSpec.spec.priority of type int32")),
        (POD, {"spec": {"containers": [{"stdin": 0}]}},
         "number into Go struct field Container.spec.containers.stdin of type bool"),
        (SECRET, {"data": {"a": "eA="}}, "illegal base64 data at input byte 0"),
        (SECRET, {"data": {"a": "eHh4eA="}}, "illegal base64 data at input byte 4"),
        (SECRET, {"data": {"a": 1}}, "field Secret.data of type []uint8"),
        (LEASE, {"spec": {"renewTime": "2026-01-01T00:00:00Z"}},
         'as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'),
        (LEASE, {"spec": {"renewTime": "soon"}}, 'cannot parse "soon" as "2006"'),
        (LEASE, {"metadata": {"creationTimestamp": True}},
         "bool into Go struct field ObjectMeta.metadata.creationTimestamp of type string"),
    ],
)  # fmt: skip
def test_the_first_value_that_does_not_fit_is_named(
    type_name: str, obj: dict[str, Any], end: str
) -> None:
    fault = first_type_error(obj, type_name)
    assert fault is not None
    assert fault.endswith(end)


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"spec": None},
        {"spec": {"unknown": 1, "containers": [{"name": "c"}], "priority": -3}},
        {"spec": {"overhead": {"cpu": "1", "memory": 3}}},
        {"metadata": {"creationTimestamp": "2026-01-01T00:00:00.5+02:00"}},
    ],
)
def test_what_fits_is_not_complained_about(obj: dict[str, Any]) -> None:
    assert first_type_error(obj, POD) is None
    assert first_conversion_error(obj, POD) is None


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"spec": []}, "cannot restore struct from: slice"),
        ({"spec": {"volumes": "x"}}, "cannot restore slice from string"),
        ({"spec": {"volumes": [1]}}, "cannot restore struct from: int64"),
        ({"spec": {"nodeSelector": True}}, "cannot restore map from bool"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "cannot convert int64 to string"),
        ({"spec": {"hostNetwork": "x"}}, "unrecognized type: bool"),
    ],
)
def test_strategic_patches_have_words_of_their_own(obj: dict[str, Any], message: str) -> None:
    assert first_conversion_error(obj, POD) == message
