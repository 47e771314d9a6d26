from __future__ import annotations

from everynode.apiserver.schema.object_type import CUSTOM, ObjectType


def test_the_fields_of_a_built_in_type_come_from_the_table_of_types() -> None:
    tree = ObjectType("io.k8s.api.core.v1.Pod").tree
    assert {"metadata", "spec", "status"} <= set(tree.fields)


def test_the_fields_of_a_custom_resource_come_from_its_schema() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    assert "spec" in ObjectType(schema=schema).tree.fields
    assert "spec" not in CUSTOM.tree.fields
