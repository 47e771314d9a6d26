from __future__ import annotations

from everynode.apiserver.output.table.columns import Column, custom_layout, layout_of


def test_every_layout_begins_with_the_name_except_that_of_events() -> None:
    for resource in ("pods", "nodes", "daemonsets.apps", "anything.example.test"):
        assert layout_of(resource).columns[0] == Column("Name", format="name")
    assert layout_of("events").columns[0].name == "Last Seen"


def test_a_custom_column_keeps_what_its_definition_says() -> None:
    column = {
        "name": "Size",
        "type": "integer",
        "format": "int32",
        "priority": 1,
        "description": "How large it is.",
        "jsonPath": ".spec.size",
    }
    layout = custom_layout([column])
    assert layout.columns[1].definition() == {k: v for k, v in column.items() if k != "jsonPath"}
    assert layout.row({"metadata": {"name": "a"}, "spec": {"size": 3}}, 0).cells == ["a", 3]


def test_columns_after_a_path_that_cannot_be_read_are_not_shown() -> None:
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".a"},
        {"name": "B", "type": "string", "jsonPath": ".b["},
        {"name": "C", "type": "string", "jsonPath": ".c"},
    ]
    layout = custom_layout(columns)
    assert [column.name for column in layout.columns] == ["Name", "A"]
    assert layout.row({"a": "1", "c": "3"}, 0).cells == ["", "1"]
