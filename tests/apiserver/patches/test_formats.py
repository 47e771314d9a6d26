"""Patches, compared with what a real API server made of them."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everynode.api import types
from everynode.apiserver.patches.formats import PatchError, accepted_media_types, patch_object
from everynode.apiserver.schema.field_validation import convert_object
from everynode.apiserver.schema.object_type import CUSTOM, ObjectType
from everynode.kube.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.support.paths import ANSWERS as RECORDED

ANSWERS = json.loads((RECORDED / "patches.json").read_text())
POD = "io.k8s.api.core.v1.Pod"

Object = dict[str, Any]


def step_down(obj: Object, pointer: str) -> tuple[Object, str]:
    *steps, last = [s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")[1:]]
    for step in steps:
        obj = obj[step]
    return obj, last


def expected(base: Object, case: Object) -> Object:
    obj = copy.deepcopy(base)
    for pointer in case.get("gone", ()):
        parent, key = step_down(obj, pointer)
        del parent[key]
    for pointer, value in case["changes"].items():
        parent, key = step_down(obj, pointer)
        parent[key] = value
    return obj


def patched(case: Object) -> tuple[Object, list[str]]:
    base = ANSWERS["bases"][case["base"]]
    return patch_object(
        base["object"],
        case["body"].encode(),
        ObjectType(base["type"], base.get("schema")),
        content_type=case["media"],
        validation=case.get("validation", "Warn"),
    )


def cases(*, refused: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{number} {case['body'][:60]}")
        for number, case in enumerate(ANSWERS["cases"])
        if ("error" in case) is refused
    ]


@pytest.mark.parametrize("case", cases(refused=False))
def test_patches_end_as_on_the_real_server(case: Object) -> None:
    obj, warnings = patched(case)
    assert obj == expected(ANSWERS["bases"][case["base"]]["object"], case)
    assert warnings == case.get("warnings", [])


@pytest.mark.parametrize("case", cases(refused=True))
def test_patches_are_refused_in_the_real_server_s_words(case: Object) -> None:
    with pytest.raises(PatchError) as refused:
        patched(case)
    error = case["error"]
    assert (refused.value.code, refused.value.reason) == (error["code"], error["reason"])
    if error["message"].startswith("…"):
        assert refused.value.message.endswith(error["message"][1:])
    else:
        assert refused.value.message == error["message"]


def test_the_current_object_is_never_changed() -> None:
    for case in ANSWERS["cases"]:
        base = ANSWERS["bases"][case["base"]]
        kept = copy.deepcopy(base["object"])
        with contextlib.suppress(PatchError):
            patch_object(
                base["object"],
                case["body"].encode(),
                ObjectType(base["type"]),
                content_type=case["media"],
            )
        assert base["object"] == kept, case["body"]


@pytest.mark.parametrize("media", ["application/json", "text/plain", "", APPLY_PATCH])
def test_other_media_types_are_refused_with_the_list_of_those_taken(media: str) -> None:
    with pytest.raises(PatchError) as refused:
        patch_object({}, b"{}", ObjectType(POD), content_type=media)
    assert refused.value.code == 415
    assert STRATEGIC_PATCH in refused.value.message


def test_custom_kinds_take_no_strategic_patch() -> None:
    assert accepted_media_types(None) == [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    with pytest.raises(PatchError) as refused:
        patch_object({}, b"{}", CUSTOM, content_type=STRATEGIC_PATCH)
    assert refused.value.code == 415


def test_a_charset_in_the_media_type_is_no_hindrance() -> None:
    media = f"{MERGE_PATCH}; charset=utf-8"
    patched, _ = patch_object({"a": 1}, b'{"b":2}', CUSTOM, content_type=media)
    assert patched == {"a": 1, "b": 2}


def test_a_patch_of_too_many_operations_is_refused() -> None:
    body = json.dumps([{"op": "test", "path": "/a", "value": 1}] * 10_001).encode()
    with pytest.raises(PatchError) as refused:
        patch_object({"a": 1}, body, CUSTOM, content_type=JSON_PATCH)
    assert refused.value.code == 413


# --- Whatever is sent --------------------------------------------------------------------------

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 3, 1.5, "x", "", [], {}, 2**40, ["a"], [None], [{}], {"a": None}, [["x"]]]
)
DIRECTIVES = st.dictionaries(
    st.sampled_from(["$patch", "$retainKeys", "$setElementOrder/containers", "unknown"]),
    st.sampled_from(["replace", "delete", "merge", ["a"], [{"name": "c"}], None]),
    max_size=1,
)


def values(field: types.FieldInfo, depth: int) -> st.SearchStrategy[Any]:
    """Values for a field, most of them of its type."""
    if field.ref and types.load()[field.ref].fields and depth < 4:
        return st.one_of(objects(field.ref, depth + 1), JUNK)
    if field.type == "array" and field.items is not None:
        return st.one_of(st.lists(values(field.items, depth), max_size=2), JUNK)
    if field.type == "object" and field.values is not None:
        inner = values(field.values, depth)
        return st.one_of(st.dictionaries(st.sampled_from("ab"), inner, max_size=2), JUNK)
    scalars = {"string": st.sampled_from("abc"), "integer": st.integers(0, 3)}
    return st.one_of(scalars.get(field.type, st.sampled_from(["1", 80, True])), JUNK)


def objects(type_name: str, depth: int = 0) -> st.SearchStrategy[Object]:
    """Objects of a type, with directives and mistakes."""
    fields = types.load()[type_name].fields
    picked = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)
    made = picked.flatmap(
        lambda names: st.fixed_dictionaries({n: values(fields[n], depth) for n in names})
    )
    return st.builds(lambda obj, more: {**obj, **more}, made, DIRECTIVES)


@given(objects(POD), st.sampled_from([STRATEGIC_PATCH, MERGE_PATCH]))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_whatever_a_patch_says_the_answer_is_an_object_of_the_kind_or_a_refusal(
    patch: Object, media: str
) -> None:
    current = {"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v"}]}}
    try:
        obj, _ = patch_object(
            current, json.dumps(patch).encode(), ObjectType(POD), content_type=media
        )
    except PatchError:
        return
    assert convert_object(obj, ObjectType(POD)) == (obj, [])
