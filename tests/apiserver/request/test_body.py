"""Bodies of requests, compared with how a real API server read or refused them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.api import types
from everynode.apiserver.errors import StatusError
from everynode.apiserver.request.body import NestedKind, decode_body, read_apply_patch
from everynode.apiserver.schema.object_type import CUSTOM, ObjectType
from tests.support.api_client import MAPS, PODS, Cluster, pod
from tests.support.api_client import config_map as a_config_map
from tests.support.paths import ANSWERS as RECORDED

ANSWERS = json.loads((RECORDED / "bodies.json").read_text())

Object = dict[str, Any]


CONFIG_MAP = NestedKind("", "v1", "ConfigMap", ObjectType(types.type_for("", "v1", "ConfigMap")))


def read(case: Object) -> tuple[Object, list[str]]:
    names = case["group"], case["version"], case["kind"]
    type_name = types.type_for(*names)
    schema = None if type_name else ANSWERS["schema"]
    body_kind = NestedKind(*names, ObjectType(type_name, schema))
    return decode_body(
        case["body"].encode(),
        body_kind,
        content_type=case.get("media", "application/json"),
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
    with pytest.raises(StatusError) as refused:
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
    return decode_body(body.encode(), CONFIG_MAP, content_type=media)[0]


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
    widget = NestedKind("example.test", "v1", "Widget", CUSTOM)
    with pytest.raises(StatusError) as refused:
        decode_body(b"k8s\0", widget, content_type="application/vnd.kubernetes.protobuf")
    assert refused.value.code == 415


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("- a", "cannot unmarshal array into Go value of type map[string]interface {}"),
        ("{not: [yaml", "error decoding YAML: error converting YAML to JSON: yaml: line 1"),
    ],
)
def test_an_apply_that_is_no_object_is_refused(body: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        read_apply_patch(body.encode())
    assert refused.value.code == 400
    assert message in refused.value.message


@pytest.mark.parametrize("body", ["labels:\n  a: b\n  a: c\n", '{"labels":\n{"a":"b",\n"a":"c"}}'])
def test_an_apply_that_has_duplicate_keys_warns_or_is_refused(body: str) -> None:
    problem = (
        "error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 3: key "a" already set in map'
    )
    assert read_apply_patch(body.encode()) == ({"labels": {"a": "c"}}, [problem])
    assert read_apply_patch(body.encode(), validation="Ignore") == ({"labels": {"a": "c"}}, [])
    with pytest.raises(StatusError) as refused:
        read_apply_patch(body.encode(), validation="Strict")
    assert refused.value.message == f"error strict decoding YAML: {problem}"


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"a":' + b"[" * 100_000,
        b'{"a":"\xff"}',
        b'{"a":1e999}',
        b"- " * 50_000,
    ],
    ids=["deep objects", "open lists", "utf-8", "range", "deep YAML"],
)
def test_an_applied_body_that_would_exhaust_the_server_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        read_apply_patch(body)
    assert caught.value.code == 400


async def test_yaml_is_read_too(cluster: Cluster) -> None:
    body = b"metadata:\n  name: a\ndata: {x: '1'}\n"
    answer = await cluster.ask("POST", MAPS, body, content_type="application/yaml")
    assert answer.body["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("validation", "status"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("Foo", 422)]
)
async def test_client_chooses_how_strictly_it_is_read(
    cluster: Cluster, validation: str, status: int
) -> None:
    answer = await cluster.post(
        f"{MAPS}?fieldValidation={validation}", {**a_config_map("a"), "odd": 1}
    )
    assert answer.status == status
    assert ("warning" in answer.headers) is (validation == "Warn")


async def test_duplicate_key_is_refused_when_strict(cluster: Cluster) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    answer = await cluster.ask("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert answer.status == 400
    assert 'duplicate field "data.x"' in answer.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "json parse error: unexpected end of JSON input"),
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b"[1]", "couldn't get version/kind"),
        (b'{"data":{"x":1}}', "cannot unmarshal number into Go struct field ConfigMap.data"),
        (b'{"metadata":{"labels":[]}}', "cannot unmarshal array into Go struct field ObjectMeta"),
    ],
)
async def test_body_that_cannot_be_read_is_refused(
    cluster: Cluster, body: bytes, words: str
) -> None:
    answer = await cluster.ask("POST", MAPS, body)
    assert answer.status == 400
    assert words in answer.message


async def test_other_kind_is_refused(cluster: Cluster) -> None:
    answer = await cluster.post(MAPS, {"kind": "Pod", "apiVersion": "v1", **pod("p")})
    assert answer.status == 400
    assert 'Pod in version "v1" cannot be handled as a ConfigMap' in answer.message


async def test_unknown_format_is_refused(cluster: Cluster) -> None:
    answer = await cluster.ask("POST", MAPS, b"x", content_type="text/plain")
    assert answer.status == 415


async def test_nulls_and_empty_lists_are_not_stored(cluster: Cluster) -> None:
    body = pod("p", nodeSelector={}, tolerations=[], volumes=None)
    body["metadata"]["labels"] = None
    made = await cluster.create(PODS, body)
    for key in ("nodeSelector", "volumes"):
        assert key not in made["spec"]
    assert "labels" not in made["metadata"]
