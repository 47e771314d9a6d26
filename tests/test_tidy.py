"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_FILE = 500
MAX_FUNCTION = 60
BANNED_NAMES = {"utils", "helpers", "common", "manager", "base", "misc"}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_files_are_small_and_say_what_they_answer(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= MAX_FILE
    assert ast.get_docstring(tree)
    assert path.stem not in BANNED_NAMES
    for function in functions(tree):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < MAX_FUNCTION, function.name


def tracked_text_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    binary = {".png", ".svg", ".gif", ".sum", ".txt"}
    return [ROOT / name for name in listing if Path(name).suffix not in binary]


def test_no_task_is_left_behind_without_a_number() -> None:
    loose = re.compile(r"\b(TODO|FIXME|XXX)\b(?! *\(#\d+\))")
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_text_files()
        if path.exists() and path != Path(__file__).resolve() and loose.search(path.read_text())
    ]
    assert found == []


def test_the_changelog_speaks_of_the_current_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
