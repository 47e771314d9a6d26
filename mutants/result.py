"""RESULT.md: the committed table of all mutants and the plans that caught them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mutants.hunt import Found
from mutants.mutant import Mutant

PATH: Final = Path(__file__).resolve().parent / "RESULT.md"
_HEAD: Final = """\
# Mutants

Deliberate bugs in `decide/` and `controller/`, each planted in a copy of the sources in which
the simulator then looks for a broken promise. Written by `make mutants`; the bugs themselves are
in the `.toml` files beside this one.

"""
_COLUMNS: Final = "| mutant | what a user would suffer | caught by | promise |\n|---|---|---|---|\n"
_SURVIVED: Final = "**survived**"


def write_result(found: list[tuple[Mutant, Found]]) -> None:
    """Write the table."""
    caught = sum(bool(each.plan) for _, each in found)
    rows = [
        f"| {mutant.name} | {mutant.suffers} | {each.plan or _SURVIVED} | {each.promise} |\n"
        for mutant, each in found
    ]
    text = f"{_HEAD}{caught} of {len(found)} are caught.\n\n{_COLUMNS}{''.join(rows)}"
    PATH.write_text(text, encoding="utf-8")


def read_result() -> dict[str, str]:
    """By mutant, the plan that caught it last time; survivors are left out."""
    if not PATH.exists():
        return {}
    rows = [line.split(" | ") for line in PATH.read_text(encoding="utf-8").splitlines()]
    return {row[0][2:]: row[-2] for row in rows if len(row) == 4 and row[-2] != _SURVIVED}
