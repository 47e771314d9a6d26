from __future__ import annotations

from everynode.cluster.shape import (
    ANY,
    DEDUCED,
    MAP,
    NUMBER,
    SET,
    STRING,
    WHOLE,
    custom_shape,
    shape_of,
    shape_of_schema,
)

POD_SPEC = "io.k8s.api.core.v1.PodSpec"


def test_lists_of_known_kinds_merge_as_the_table_says() -> None:
    fields = shape_of(POD_SPEC).fields
    assert (fields["containers"].listing, fields["containers"].keys) == (MAP, ("name",))
    assert fields["tolerations"].listing == "atomic"
    metadata = shape_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").fields
    assert metadata["finalizers"].listing == SET


def test_maps_stay_whole_where_the_table_says_so() -> None:
    fields = shape_of(POD_SPEC).fields
    assert fields["nodeSelector"].atomic
    assert not fields["affinity"].atomic
    assert shape_of("io.k8s.api.apps.v1.DaemonSetSpec").fields["selector"].atomic


def test_parts_that_are_always_there_are_known() -> None:
    zeros = shape_of("io.k8s.api.apps.v1.DaemonSetStatus").zeros
    assert zeros["numberReady"] == 0
    assert "updatedNumberScheduled" not in zeros
    assert shape_of(POD_SPEC).zeros == {"containers": None}
    port = shape_of("io.k8s.api.core.v1.ContainerPort")
    assert port.defaults["protocol"] == "TCP"
    assert "protocol" not in port.zeros


def test_types_may_contain_themselves() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    shape = shape_of(name)
    assert shape.fields["properties"].values is shape


def test_embedded_json_is_replaced_as_a_whole() -> None:
    assert shape_of("io.k8s.api.apps.v1.ControllerRevision").fields["data"] is WHOLE


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
    shape = shape_of_schema(schema)
    fields = shape.fields["spec"].fields
    assert (fields["size"].scalar, fields["either"].scalar) == (NUMBER, ANY)
    assert (fields["tags"].listing, fields["tags"].items.scalar) == (SET, STRING)
    assert fields["free"].field("anything") is DEDUCED
    inner = fields["map"].field("anything")
    assert inner is not None
    assert inner.scalar == STRING
    assert fields["closed"].field("b") is None
    assert fields["template"].field("metadata") is shape.fields["metadata"]
    assert shape.field("unknown") is None


def test_without_a_schema_only_the_metadata_is_known() -> None:
    shape = custom_shape(None)
    assert shape.field("spec") is DEDUCED
    assert shape.fields["metadata"].fields["finalizers"].listing == SET
