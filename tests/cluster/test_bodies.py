"""Bodies of requests, compared with how a real API server read or refused them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from everynode.api import types
from everynode.cluster.bodies import read_applied, read_object
from everynode.cluster.errors import Refusal

ANSWERS = json.loads((Path(__file__).parent / "answers" / "bodies.json").read_text())

Object = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    kind: str


CONFIG_MAP = Kind("", "v1", "ConfigMap")


def read(case: Object) -> tuple[Object, list[str]]:
    kind = Kind(case["group"], case["version"], case["kind"])
    type_name = types.type_for(kind.group, kind.version, kind.kind)
    return read_object(
        case["body"].encode(),
        content_type=case.get("media", "application/json"),
        kind=kind,
        type_name=type_name,
        schema=None if type_name else ANSWERS["schema"],
        validation=case["validation"],
    )


def cases(*, refused: bool) -> list[Any]:
    return [
        pytest.param(case, id=str(number))
        for number, case in enumerate(ANSWERS["cases"])
        if ("error" in case) is refused
    ]


@pytest.mark.parametrize("case", cases(refused=True))
def test_bodies_are_refused_in_the_real_server_s_words(case: Object) -> None:
    with pytest.raises(Refusal) as refused:
        read(case)
    error = case["error"]
    assert refused.value.code == error["code"]
    if error.get("begins"):
        assert refused.value.message.startswith(error["message"])
    else:
        assert refused.value.message == error["message"]


@pytest.mark.parametrize("case", cases(refused=False))
def test_bodies_are_taken_with_the_real_server_s_warnings(case: Object) -> None:
    obj, warnings = read(case)
    assert obj["kind"] == case["kind"]
    assert warnings == case.get("warnings", [])


def config_map(body: str, *, media: str = "application/json") -> Object:
    type_name = types.type_for("", "v1", "ConfigMap")
    return read_object(body.encode(), content_type=media, kind=CONFIG_MAP, type_name=type_name)[0]


def test_version_and_kind_may_be_left_out() -> None:
    assert config_map('{"metadata":{"name":"a"}}') == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
    }


def test_yaml_is_read_as_the_same_object() -> None:
    text = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  when: 2026-01-01\n  answer: 'no'\n"
    obj = config_map(text, media="application/yaml; charset=utf-8")
    assert obj["data"] == {"when": "2026-01-01", "answer": "no"}


def test_custom_kinds_are_not_read_from_protobuf() -> None:
    kind = Kind("example.test", "v1", "Widget")
    with pytest.raises(Refusal) as refused:
        read_object(
            b"k8s\0", content_type="application/vnd.kubernetes.protobuf", kind=kind, type_name=None
        )
    assert refused.value.code == 415


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("- a", "cannot unmarshal array into Go value of type map[string]interface {}"),
        ("{not: [yaml", "error decoding YAML: error converting YAML to JSON: yaml: line 1"),
    ],
)
def test_an_apply_that_is_no_object_is_refused(body: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_applied(body.encode())
    assert refused.value.code == 400
    assert message in refused.value.message


@pytest.mark.parametrize("body", ["labels:\n  a: b\n  a: c\n", '{"labels":\n{"a":"b",\n"a":"c"}}'])
def test_an_apply_that_says_a_thing_twice_warns_or_is_refused(body: str) -> None:
    problem = (
        "error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 3: key "a" already set in map'
    )
    assert read_applied(body.encode()) == ({"labels": {"a": "c"}}, [problem])
    assert read_applied(body.encode(), validation="Ignore") == ({"labels": {"a": "c"}}, [])
    with pytest.raises(Refusal) as refused:
        read_applied(body.encode(), validation="Strict")
    assert refused.value.message == f"error strict decoding YAML: {problem}"
