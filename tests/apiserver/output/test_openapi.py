from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from everynode.api import types
from everynode.apiserver.output.openapi import PREFIX, Documents, document, type_schema, v2_document
from everynode.apiserver.resources.registry import VERBS
from tests.support.paths import ROOT

Object = dict[str, Any]

SENTENCES = ROOT / "src/everynode/apiserver/output/descriptions.json"


@dataclass(frozen=True)
class Part:
    name: str


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    schema: Object | None = None
    subresources: tuple[Part, ...] = (Part("status"),)
    verbs: tuple[str, ...] = VERBS

    @property
    def type_name(self) -> str | None:
        return types.type_for(self.group, self.version, self.kind)


POD = Kind("", "v1", "Pod", "pods")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", subresources=())
WIDGET = Kind(
    "example.test",
    "v1",
    "Widget",
    "widgets",
    schema={
        "type": "object",
        "description": "A thing.",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    },
)
ALL = [POD, NODE, DAEMON_SET, CONFIG_MAP, WIDGET]


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for child in value.values() for ref in references(child)]
    if isinstance(value, list):
        return [ref for child in value for ref in references(child)]
    return []


def read(documents: Documents, path: str) -> Object:
    content = documents.document(path)
    assert content is not None
    made: Object = json.loads(content)
    return made


def test_there_is_one_document_for_each_group_and_version() -> None:
    documents = Documents(ALL)
    links = {path: entry["serverRelativeURL"] for path, entry in documents.index()["paths"].items()}
    assert sorted(links) == ["api/v1", "apis/apps/v1", "apis/example.test/v1"]
    for path, link in links.items():
        assert link.startswith(f"/openapi/v3/{path}?hash=")
    assert documents.document("apis/nothing/v1") is None


def test_the_hash_changes_with_the_document_and_only_with_it() -> None:
    def link(kinds: list[Kind], path: str) -> str:
        return str(Documents(kinds).index()["paths"][path]["serverRelativeURL"])

    assert link(ALL, "apis/apps/v1") == link([DAEMON_SET], "apis/apps/v1")
    assert link([POD], "api/v1") != link([POD, NODE], "api/v1")


@pytest.mark.parametrize("path", ["api/v1", "apis/apps/v1", "apis/example.test/v1"])
def test_every_reference_leads_to_a_schema(path: str) -> None:
    made = read(Documents(ALL), path)
    names = {PREFIX + name for name in made["components"]["schemas"]}
    found = references(made)
    assert found
    assert [ref for ref in found if ref not in names] == []


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (POD, "/api/v1/namespaces/{namespace}/pods/{name}"),
        (NODE, "/api/v1/nodes/{name}"),
        (DAEMON_SET, "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"),
        (DAEMON_SET, "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}/status"),
        (WIDGET, "/apis/example.test/v1/namespaces/{namespace}/widgets/{name}"),
    ],
)
def test_patches_carry_their_media_type_and_field_validation(kind: Kind, path: str) -> None:
    patch = document([kind])["paths"][path]["patch"]
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    assert patch["x-kubernetes-group-version-kind"] == named
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    assert strategic is (kind.type_name is not None)


def test_a_status_has_a_path_only_where_it_is_served() -> None:
    paths = document([CONFIG_MAP])["paths"]
    assert not [path for path in paths if path.endswith("/status")]


def test_merge_keys_are_part_of_the_schema() -> None:
    containers = type_schema("io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["allOf"] == [{"$ref": PREFIX + "io.k8s.api.core.v1.Container"}]


def test_a_custom_kind_has_its_own_schema_and_what_all_objects_have() -> None:
    schema = document([WIDGET])["components"]["schemas"]["test.example.v1.Widget"]
    assert sorted(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert schema["description"] == "A thing."
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.test", "version": "v1", "kind": "Widget"}
    ]
    assert "metadata" not in (WIDGET.schema or {})["properties"]


def test_every_sentence_is_about_a_type_and_a_field_that_exist() -> None:
    fields: dict[str, set[str]] = {"Object": {"apiVersion", "kind", "metadata"}}
    for name, info in types.load().items():
        fields.setdefault(name.rsplit(".", 1)[1], {""}).update(info.fields)
    said = json.loads(SENTENCES.read_text())
    assert [(t, f) for t, about in said.items() for f in about if f not in fields.get(t, ())] == []


def test_the_main_kinds_are_described_in_full() -> None:
    for name in ("apps.v1.DaemonSetSpec", "apps.v1.DaemonSetStatus", "core.v1.Container"):
        schema = type_schema(f"io.k8s.api.{name}")
        bare = [f for f, field in schema["properties"].items() if "description" not in field]
        assert bare == [], name


def test_old_clients_get_a_document_of_version_two_that_they_can_read() -> None:
    media, content = v2_document("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert media == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert content == b"\n\x032.0\x12\x14\n\tEverynode\x12\x07v1.37.1"
    media, content = v2_document("application/json, */*")
    assert media == "application/json"
    assert json.loads(content)["swagger"] == "2.0"
