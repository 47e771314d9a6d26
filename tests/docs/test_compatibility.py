"""Every behaviour that the compatibility table claims names a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "compatibility.md"
REFERENCE = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> list[list[str]]:
    """The rows of all tables, without their heads."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("Behaviour", "---")]


@cache
def found_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def test_every_row_has_three_cells_and_a_test() -> None:
    assert len(rows()) > 80
    for row in rows():
        assert len(row) == 3, row
        assert REFERENCE.fullmatch(row[2]), f"no test is named for: {row[0]}"


def test_every_test_that_is_named_exists() -> None:
    named = [match for row in rows() for match in REFERENCE.findall(row[2])]
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (TESTS / path).is_file() or name not in found_in(path)
    ]
    assert missing == []


def test_every_scenario_of_the_features_is_in_the_table() -> None:
    text = TABLE.read_text()
    for path in ("rollout", "canary", "inplace", "hooks", "prepull", "history"):
        for name in found_in(f"e2e/test_{path}.py"):
            if name.startswith("test_") and name not in UNLISTED:
                assert name in text, f"{path}: {name}"


# Scenarios that show the same behaviour from another side.
UNLISTED = {
    "test_a_pod_is_available_only_after_min_ready_seconds",
    "test_without_it_a_partition_withholds_no_pod",
}
