"""ObjectType: the type by which the fields of an object are decoded, merged and owned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everynode.apiserver.schema.type_tree import TypeNode, custom_type_tree, type_tree_of


class ObjectType(NamedTuple):
    """A built-in type by its name, or a custom resource by its schema, if it has one."""

    name: str | None = None  # in the table of types; None for custom resources
    schema: Mapping[str, Any] | None = None  # the OpenAPI schema of a custom resource

    @property
    def tree(self) -> TypeNode:
        """The fields of the type, and how lists and maps in them are merged."""
        return custom_type_tree(self.schema) if self.name is None else type_tree_of(self.name)


CUSTOM = ObjectType()  # a custom resource without a schema
