"""Tables, compared with those of a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everynode.apiserver.output.table import render
from tests.support.paths import ANSWERS as RECORDED

ANSWERS = json.loads((RECORDED / "tables.json").read_text())

Object = dict[str, Any]

CONFIG_MAP: Object = {
    "metadata": {
        "name": "a",
        "resourceVersion": "7",
        "creationTimestamp": "1970-01-01T00:00:00Z",
    },
    "data": {"x": "1"},
}


@pytest.mark.parametrize("resource", sorted(ANSWERS["columns"]))
def test_columns_are_those_of_the_real_server(resource: str) -> None:
    table = render(resource, [], now=0, columns=ANSWERS["custom"].get(resource))
    shown = [{k: v for k, v in c.items() if k != "description"} for c in table["columnDefinitions"]]
    assert shown == ANSWERS["columns"][resource]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(a, id=f"{a['resource']} {a['object']['metadata']['name']}")
        for a in ANSWERS["rows"]
    ],
)
def test_cells_are_those_of_the_real_server(answer: Object) -> None:
    columns = ANSWERS["custom"].get(answer["resource"])
    now = answer["now"] + 0.3
    row = render(answer["resource"], [answer["object"]], now=now, columns=columns)["rows"][0]
    assert row["cells"] == answer["cells"]
    assert [mark["reason"] for mark in row.get("conditions", [])] == answer.get("marks", [])


def test_one_object_gives_its_own_version_to_the_table() -> None:
    assert render("configmaps", [CONFIG_MAP], now=60) == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Data", "type": "string", "format": "", "description": "", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
        ],
        "rows": [
            {
                "cells": ["a", 1, "60s"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": CONFIG_MAP["metadata"],
                },
            }
        ],
    }


def test_a_list_gives_its_metadata_to_the_table() -> None:
    metadata = {"resourceVersion": "9", "continue": "x", "remainingItemCount": 3}
    assert render("configmaps", [CONFIG_MAP], now=0, metadata=metadata)["metadata"] == metadata


@pytest.mark.parametrize(("include", "shown"), [("Object", CONFIG_MAP), ("None", None)])
def test_rows_carry_the_object_or_nothing_if_asked(include: str, shown: Object | None) -> None:
    table = render("configmaps", [CONFIG_MAP], now=0, include_object=include)
    assert table["rows"][0]["object"] == shown


def test_later_events_of_a_watch_go_without_headers() -> None:
    table = render("configmaps", [CONFIG_MAP], now=0, headers=False)
    assert table["columnDefinitions"] is None


def test_a_custom_kind_without_columns_shows_its_age() -> None:
    table = render("widgets.example.test", [CONFIG_MAP], now=60, columns=[])
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["a", "60s"]


def test_a_kind_without_columns_shows_when_it_was_made() -> None:
    table = render("things.example.test", [CONFIG_MAP], now=60)
    assert table["rows"][0]["cells"] == ["a", "1970-01-01T00:00:00Z"]


@pytest.mark.parametrize("resource", sorted(ANSWERS["columns"]))
def test_an_object_with_nothing_in_it_still_has_a_row(resource: str) -> None:
    table = render(resource, [{}], now=0, columns=ANSWERS["custom"].get(resource))
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
