"""The page on Python works outside the repository: the wheel in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import wheel
from tests.support.paths import ROOT

BLOCKS = re.findall(
    r"```(python|text)\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL
)


def scripts() -> Iterator[tuple[str, str]]:
    """Return each program of the page with what it prints."""
    for (kind, code), (next_kind, text) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind == "python" and next_kind == "text":
            yield code, text


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment in which only the wheel of Everynode is installed."""
    folder = tmp_path_factory.mktemp("outside")
    return wheel.install(wheel.build(folder), folder / "venv") / "python"


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{python.parent}:{os.environ['PATH']}", "HOME": str(folder)}
    command = [str(python), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("code", "text"), [*scripts()], ids=["forecast", "cluster"])
def test_a_program_prints_what_the_page_says(
    python: Path, tmp_path: Path, code: str, text: str
) -> None:
    (tmp_path / "program.py").write_text(code)
    result = run(python, tmp_path, "-W", "error", "program.py")
    assert (result.stdout, result.stderr) == (text, "")


def test_pytest_finds_the_fixture(python: Path, tmp_path: Path) -> None:
    (code,) = [code for kind, code in BLOCKS if "def test_" in code]
    (tmp_path / "test_page.py").write_text(code)
    result = run(python, tmp_path, "-m", "pytest", "-q", "-p", "no:asyncio")
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_the_plugin_imports_nothing_until_it_is_used(python: Path, tmp_path: Path) -> None:
    code = """
import sys
import everynode.pytest_plugin
print(everynode.__file__)
print([name for name in sys.modules if name.startswith("everynode.")])
"""
    result = run(python, tmp_path, "-c", code)
    file, modules = result.stdout.splitlines()
    assert file.startswith(str(python.parents[1]))
    assert modules == "['everynode.pytest_plugin']"
