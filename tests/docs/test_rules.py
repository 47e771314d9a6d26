"""Every rule, promise and fault has an anchor in docs/rules.md; every anchor cited exists."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from everynode.sim.checks import CHECKS
from everynode.sim.checks.request_rate import RequestRate
from everynode.sim.faults.catalogue import ALL_FAULTS

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "rules.md"
ANCHORS = re.findall(r'<a id="([^"]+)"></a>', RULES.read_text(encoding="utf-8"))
SOURCES = sorted((ROOT / "src" / "everynode").rglob("*.py"))
WRITTEN = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", RULES, ROOT / "docs" / "glossary.md"]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
PATH = re.compile(
    r"`([\w/-]+\.(?:py|json|toml)|(?:src|tests|decide|kube|apiserver|sim|cli)/[\w/-]+)`"
)
CITED = re.compile(r"rules\.md#([\w-]+)")
# R4, S1a, L2, F29, law 5, as comments, docstrings and messages name them.
NAMED = re.compile(r"(?<![\w.#/-])(?:([SLF]\d{1,2}[abc]?|R\d)|law (\d))(?!\w|\.\w)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors_of_headings(text: str) -> Iterator[str]:
    """The anchors that GitHub gives to headings: lower case, hyphens, no punctuation."""
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        plain = re.sub(r"<[^>]+>", "", title).lower()
        yield re.sub(r"[^\w -]", "", plain).replace(" ", "-")


# Where a link to the page may lead; rules, promises and faults have anchors of their own.
REACHABLE = {*ANCHORS, *anchors_of_headings(read(RULES))}


def test_anchors_are_unique() -> None:
    assert len(ANCHORS) > 90
    assert [name for name, times in Counter(ANCHORS).items() if times > 1] == []


def test_every_anchor_that_is_cited_exists() -> None:
    cited = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*SOURCES, *PAGES)
        for name in CITED.findall(read(path))
        if name not in REACHABLE
    ]
    assert cited == []


def test_links_to_a_part_of_a_page_lead_to_its_heading() -> None:
    missing = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([^)]+)\)", text):
            linked = read(page.parent / target) if target else read(page)
            named = re.findall(r'<a id="([^"]+)"></a>', linked)
            if anchor not in {*named, *anchors_of_headings(linked)}:
                missing.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert missing == []


def test_links_inside_the_page_lead_somewhere() -> None:
    linked = re.findall(r"\]\(#([^)]+)\)", read(RULES))
    assert len(linked) > 50
    assert [name for name in linked if name not in REACHABLE] == []


def test_every_law_and_every_rule_has_an_anchor() -> None:
    laws = [name for name in ANCHORS if re.fullmatch(r"law-\d", name)]
    rules = [name for name in ANCHORS if re.fullmatch(r"r\d", name)]
    assert laws == [f"law-{number}" for number in range(1, 9)]
    assert rules == [f"r{number}" for number in range(1, 10)]


def test_every_fault_of_the_simulator_has_an_anchor() -> None:
    assert [each.id for each in ALL_FAULTS if each.id.lower() not in ANCHORS] == []


def test_every_check_of_the_simulator_has_an_anchor() -> None:
    checks = [*(each.id for each in CHECKS), RequestRate.id]
    assert [name for name in checks if name.lower() not in ANCHORS] == []


def test_every_rule_that_the_source_names_has_an_anchor() -> None:
    missing = []
    for path in SOURCES:
        found = NAMED.findall(read(path))
        named = {name.lower() if name else f"law-{law}" for name, law in found}
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in sorted(named - {*ANCHORS})]
    assert missing == []


def test_every_promise_that_a_mutant_breaks_has_an_anchor() -> None:
    lists = [tomllib.loads(read(path)) for path in sorted((ROOT / "mutants").glob("*.toml"))]
    broken = {mutant["promise"] for each in lists for mutant in each["mutant"]}
    assert len(broken) > 10
    assert sorted(name for name in broken if name.lower() not in ANCHORS) == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_pages_name_files_and_folders_that_are_there(page: Path) -> None:
    named = [each for each in PATH.findall(read(page)) if "NAME" not in each]
    assert len(named) > 20
    roots = (ROOT, ROOT / "src" / "everynode", ROOT / "src" / "everynode" / "sim" / "checks")
    ends = [str(path) for path in (ROOT / "src" / "everynode").rglob("*.*")]
    missing = [
        each
        for each in named
        if not any((root / each).exists() for root in roots)
        and not any(path.endswith(f"/{each}") for path in ends)
    ]
    assert missing == []
