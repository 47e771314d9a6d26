"""Tables (meta.k8s.io) as kubectl prints them: `render` makes the whole answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everynode.apiserver.output.table.cells import Row
from everynode.apiserver.output.table.columns import Column, Layout, custom_layout, layout_of

__all__ = ["Column", "Layout", "Row", "columns_of", "custom_layout", "layout_of", "render"]

Object = dict[str, Any]


def columns_of(resource: str, columns: Sequence[Mapping[str, Any]] | None = None) -> Layout:
    """Return the layout of a resource; `columns` are the printer columns of a custom one."""
    return layout_of(resource) if columns is None else custom_layout(columns)


def render(
    resource: str,
    objects: Iterable[Object],
    *,
    now: float,
    columns: Sequence[Mapping[str, Any]] | None = None,
    include_object: str = "Metadata",
    metadata: Object | None = None,
    headers: bool = True,
) -> Object:
    """Return the Table of objects of one resource, named as in `daemonsets.apps`.

    `columns` are the additionalPrinterColumns of a custom resource, an empty list if it has none.
    `include_object` is Metadata, Object or None. `metadata` is that of the list; without one it
    is that of a single object. The second and later events of a watch go without headers.
    """
    layout = columns_of(resource, columns)
    listed = list(objects)
    if metadata is None:
        version = listed[0].get("metadata", {}).get("resourceVersion") if len(listed) == 1 else None
        metadata = {"resourceVersion": version} if version else {}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in layout.columns]
        if headers
        else None,
        "rows": [_row(layout, obj, now, include_object) for obj in listed],
    }


def _row(layout: Layout, obj: Object, now: float, include_object: str) -> Object:
    rendered = layout.row(obj, now)
    row: Object = {"cells": rendered.cells}
    if rendered.conditions:
        row["conditions"] = rendered.conditions
    row["object"] = _included_object(obj, include_object)
    return row


def _included_object(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj.get("metadata", {}),
    }
