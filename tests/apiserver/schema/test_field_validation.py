from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.apiserver.request.json_syntax import parse_json
from everynode.apiserver.schema.field_validation import BodyTypeError, convert_body, convert_object
from everynode.apiserver.schema.object_type import ObjectType

POD = "io.k8s.api.core.v1.Pod"
DAEMON_SET = "io.k8s.api.apps.v1.DaemonSet"
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
REVISION = "io.k8s.api.apps.v1.ControllerRevision"


def read(
    text: str, type_name: str | None = POD, schema: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    body = text.encode()
    return convert_body(parse_json(body), body, ObjectType(type_name, schema))


def test_a_clean_object_is_read_in_the_form_of_its_kind() -> None:
    text = '{"spec":{"containers":[{"name":"c","image":"i"}]},"metadata":{"name":"p"}}'
    assert read(text) == (
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]},
            "status": {},
        },
        [],
    )


def test_unknown_fields_are_left_out_and_named() -> None:
    obj, problems = read('{"spec":{"foo":1,"containers":[{"name":"c"},{"bar":{"a":1}}]},"zip":2}')
    assert obj["spec"]["containers"][1] == {"name": "", "resources": {}}
    assert problems == [
        'unknown field "spec.foo"',
        'unknown field "spec.containers[1].bar"',
        'unknown field "zip"',
    ]


def test_of_a_field_that_comes_twice_the_last_one_counts() -> None:
    obj, problems = read('{"spec":{"nodeName":"a","nodeName":"b","nodeName":"c"}}')
    assert obj["spec"]["nodeName"] == "c"
    assert problems == ['duplicate field "spec.nodeName"']


def test_an_escaped_quotation_mark_hides_no_duplicate() -> None:
    text = '{"metadata":{"annotations":{"\\u0022\\u0022":"x","a":"1","a":"2"}}}'
    assert read(text)[1] == ['duplicate field "metadata.annotations.a"']


def test_a_null_in_a_list_is_the_zero_value_of_its_items() -> None:
    text = '{"rules":[{"resources":[null,"pods"],"verbs":["get"]},null]}'
    obj, problems = read(text, "io.k8s.api.rbac.v1.ClusterRole")
    assert problems == []
    assert obj["rules"] == [{"resources": ["", "pods"], "verbs": ["get"]}, {}]


def test_nulls_and_empty_parts_are_left_out_as_if_never_sent() -> None:
    text = """{"metadata":{"name":"p","labels":null,"creationTimestamp":null,"annotations":{}},
               "spec":{"nodeName":"","tolerations":[],"hostNetwork":false,"affinity":null}}"""
    assert read(text)[0] == {"metadata": {"name": "p"}, "spec": {}, "status": {}}


def test_a_zero_is_kept_where_it_says_something() -> None:
    text = """{"spec":{"terminationGracePeriodSeconds":0,"enableServiceLinks":false,
               "volumes":[{"name":"v","emptyDir":{}}]}}"""
    assert read(text)[0]["spec"] == {
        "terminationGracePeriodSeconds": 0,
        "enableServiceLinks": False,
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


def test_embedded_json_is_taken_as_it_is() -> None:
    text = '{"data":{"z":{"a":null,"b":[]},"y":{}},"revision":1}'
    obj, problems = read(text, REVISION)
    assert json.dumps(obj["data"]) == '{"z": {"a": null, "b": []}, "y": {}}'
    assert problems == []


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(BodyTypeError) as refused:
        read('{"spec":{"hostNetwork":"yes"}}')
    assert str(refused.value) == (
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"
    )


def test_a_hundred_problems_are_enough() -> None:
    fields = ",".join(f'"u{number}":1' for number in range(120))
    assert len(read(f'{{"spec":{{{fields}}}}}')[1]) == 100


def test_a_type_that_contains_itself_is_read_too() -> None:
    text = """{"spec":{"group":"g","versions":[{"name":"v1","schema":{"openAPIV3Schema":{
               "type":"object","properties":{"a":{"properties":{"b":{"typo":1,"default":null}}}}}}}]}}"""
    obj, problems = read(text, CRD)
    path = "spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.typo"
    assert problems == [f'unknown field "{path}"']
    assert obj["spec"]["versions"][0]["name"] == "v1"


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "list": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                },
            },
        }
    },
}


def test_custom_objects_are_pruned_by_their_schema() -> None:
    text = """{"metadata":{"name":"w","what":1},
               "spec":{"size":1,"no":2,"free":{"x":{"y":null}},"list":[{"a":"1","b":"2"}]}}"""
    obj, problems = read(text, None, schema=SCHEMA)
    assert obj == {
        "metadata": {"name": "w"},
        "spec": {"size": 1, "free": {"x": {"y": None}}, "list": [{"a": "1"}]},
    }
    assert problems == [
        'unknown field "metadata.what"',
        'unknown field "spec.no"',
        'unknown field "spec.list[0].b"',
    ]


def test_custom_objects_without_a_schema_keep_everything() -> None:
    obj, problems = read('{"metadata":{"labels":null},"spec":{"a":{"b":[null]}}}', None)
    assert (obj, problems) == ({"metadata": {}, "spec": {"a": {"b": [None]}}}, [])


def test_the_metadata_of_custom_objects_is_checked() -> None:
    with pytest.raises(BodyTypeError, match=r"field ObjectMeta\.labels of type string"):
        read('{"metadata":{"labels":{"a":1}}}', None)


def test_an_object_that_was_never_a_body_is_checked_alike() -> None:
    obj, problems = convert_object({"spec": {"minReadySeconds": 0, "x": 1}}, ObjectType(DAEMON_SET))
    assert problems == ['unknown field "spec.x"']
    assert obj["status"]["numberReady"] == 0


def test_an_object_without_properties_is_pruned_unless_it_preserves_unknown_fields() -> None:
    closed, free = {"type": "object"}, {"type": "object", _PRESERVE: True}
    schema = {"type": "object", "properties": {"closed": closed, "free": free}}
    obj, problems = read('{"closed":{"a":1},"free":{"a":1},"spec":{}}', None, schema=schema)
    assert obj == {"closed": {}, "free": {"a": 1}}
    assert problems == ['unknown field "closed.a"', 'unknown field "spec"']
