"""The text that each mutant replaces occurs once in the sources."""

from __future__ import annotations

import builtins
import symtable
import tomllib
from collections import Counter

import pytest

from tests.support.paths import ROOT

LISTS = sorted((ROOT / "mutants").glob("*.toml"))
MUTANTS = [each for path in LISTS for each in tomllib.loads(path.read_text())["mutant"]]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: str(each["name"]))
def test_a_mutant_replaces_text_that_occurs_once_by_other_python(mutant: dict[str, str]) -> None:
    path = ROOT / "src" / "everynode" / mutant["file"]
    text = path.read_text()
    assert text.count(mutant["old"]) == 1
    mutated = text.replace(mutant["old"], mutant["new"])
    assert mutated != text
    # A name that does not exist would break any promise at once, and show nothing.
    assert undefined_names(mutated) == set()


def undefined_names(source: str) -> set[str]:
    """The names that functions and classes of a module use as globals and that it lacks."""
    module = symtable.symtable(source, "mutant", "exec")
    known = {*dir(builtins), *(symbol.get_name() for symbol in module.get_symbols())}
    found: set[str] = set()
    tables = [*module.get_children()]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used = (each for each in table.get_symbols() if each.is_global() and each.is_referenced())
        found |= {symbol.get_name() for symbol in used}
    return found - known


def test_mutants_have_names_of_their_own() -> None:
    names = Counter(each["name"] for each in MUTANTS)
    assert [name for name, times in names.items() if times > 1] == []


def test_mutants_are_many_and_only_in_what_decides_and_acts() -> None:
    assert len(MUTANTS) >= 70
    assert {each["file"].split("/")[0] for each in MUTANTS} == {"decide", "controller"}


def test_the_result_lists_every_mutant_as_caught() -> None:
    lines = (ROOT / "mutants" / "RESULT.md").read_text().splitlines()
    rows = [line[2:].split(" | ") for line in lines if line.startswith("| ")]
    caught = {row[0]: row[1] for row in rows[1:] if "**survived**" not in row}
    assert caught == {each["name"]: each["suffers"] for each in MUTANTS}
