from __future__ import annotations

from everynode.apiserver.schema.type_tree import (
    ANY,
    ATOMIC_ANY,
    DEDUCED,
    MAP,
    NUMBER,
    SET,
    STRING,
    custom_type_tree,
    type_tree_of,
    type_tree_of_schema,
)

POD_SPEC = "io.k8s.api.core.v1.PodSpec"


def test_lists_of_known_kinds_merge_as_the_table_says() -> None:
    fields = type_tree_of(POD_SPEC).fields
    assert (fields["containers"].list_type, fields["containers"].list_map_keys) == (MAP, ("name",))
    assert fields["tolerations"].list_type == "atomic"
    metadata = type_tree_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").fields
    assert metadata["finalizers"].list_type == SET


def test_maps_stay_whole_where_the_table_says_so() -> None:
    fields = type_tree_of(POD_SPEC).fields
    assert fields["nodeSelector"].atomic
    assert not fields["affinity"].atomic
    assert type_tree_of("io.k8s.api.apps.v1.DaemonSetSpec").fields["selector"].atomic


def test_parts_that_are_always_there_are_known() -> None:
    zero_values = type_tree_of("io.k8s.api.apps.v1.DaemonSetStatus").zero_values
    assert zero_values["numberReady"] == 0
    assert "updatedNumberScheduled" not in zero_values
    assert type_tree_of(POD_SPEC).zero_values == {"containers": None}
    port = type_tree_of("io.k8s.api.core.v1.ContainerPort")
    assert port.defaults["protocol"] == "TCP"
    assert "protocol" not in port.zero_values


def test_types_may_contain_themselves() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    type_node = type_tree_of(name)
    assert type_node.fields["properties"].values is type_node


def test_embedded_json_is_replaced_as_a_whole() -> None:
    assert type_tree_of("io.k8s.api.apps.v1.ControllerRevision").fields["data"] is ATOMIC_ANY


def test_a_schema_gives_the_shape_of_a_custom_kind() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "when": {"type": "string", "format": "date-time"},
                    "either": {"x-kubernetes-int-or-string": True},
                    "tags": {
                        "type": "array",
                        "x-kubernetes-list-type": "set",
                        "items": {"type": "string"},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    "closed": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "template": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": True,
                        "properties": {"spec": {"type": "object"}},
                    },
                },
            }
        },
    }
    type_node = type_tree_of_schema(schema)
    fields = type_node.fields["spec"].fields
    assert (fields["size"].scalar, fields["either"].scalar) == (NUMBER, ANY)
    assert (fields["tags"].list_type, fields["tags"].items.scalar) == (SET, STRING)
    assert fields["free"].field("anything") is DEDUCED
    inner = fields["map"].field("anything")
    assert inner is not None
    assert inner.scalar == STRING
    assert fields["closed"].field("b") is None
    assert fields["template"].field("metadata") is type_node.fields["metadata"]
    assert type_node.field("unknown") is None


def test_without_a_schema_only_the_metadata_is_known() -> None:
    type_node = custom_type_tree(None)
    assert type_node.field("spec") is DEDUCED
    assert type_node.fields["metadata"].fields["finalizers"].list_type == SET
