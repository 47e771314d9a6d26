"""Every command of the documentation is executed, and does what the page says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from everynode.api.versions import decode_daemonset
from everynode.localkube import binaries
from tests.support.kubernetes import lacking
from tests.support.paths import ROOT
from tests.support.tutorial import agrees, check_page, read_steps

PAGES = sorted((ROOT / "docs").glob("*.md"))
EXECUTED = [page for page in PAGES if read_steps(page.read_text(encoding="utf-8"))]
TYPED = [page for page in EXECUTED if "$ kubectl" in page.read_text(encoding="utf-8")]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def name(path: Path) -> str:
    return path.stem


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    check_page(page, tmp_path)


@pytest.mark.kubernetes
@pytest.mark.parametrize("page", TYPED, ids=name)
def test_a_page_does_what_it_says_with_the_oldest_kubectl(page: Path, tmp_path: Path) -> None:
    try:
        old = binaries.find_old_kubectl()
    except binaries.BinariesMissingError as error:
        lacking(str(error))
    check_page(page, tmp_path, kubectl=old.parent)


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_architecture_names_files_that_are_there() -> None:
    named = re.findall(r"`([\w/]+\.(?:py|json))`", (ROOT / "ARCHITECTURE.md").read_text())
    there = [str(path) for path in (ROOT / "src" / "everynode").rglob("*.*")]
    assert [each for each in named if not any(path.endswith(f"/{each}") for path in there)] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_is_used_by_a_page_and_has_no_fault(path: Path) -> None:
    used = [
        page.name for page in PAGES if page.name != "README.md" and path.name in page.read_text()
    ]
    assert used
    made = yaml.safe_load(path.read_text(encoding="utf-8"))
    made["metadata"] |= {"namespace": "default", "uid": "u"}
    assert decode_daemonset(json.dumps(made).encode()).faults == ()


def test_examples_can_be_applied_together() -> None:
    made = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in EXAMPLES]
    names = [each["metadata"]["name"] for each in made]
    assert len(set(names)) == len(names)


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [
        page.name for page in PAGES if page.name != "README.md" and page.name not in index
    ] == []


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["pod/agent-6nzl9nqwpbc6d created  3s"], ["pod/agent-z46gtr9nxs2wl created 12m5s"]),
        (["a", "…", "d"], ["a", "b", "c", "d"]),
        (["a", "…", "d"], ["a", "d"]),
        (["… of 6 nodes"], ["1 of 6 nodes"]),
        (["at 10.64.0.2"], ["at 10.64.5.11"]),
        (['pod "x" deleted'], ['pod "x" deleted from default namespace']),
        ([], []),
    ],
)
def test_what_differs_from_run_to_run_is_overlooked(shown: list[str], printed: list[str]) -> None:
    assert agrees(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["a"], []),
        ([], ["a"]),
        (["a", "b"], ["b", "a"]),
        (["2 of 6 nodes"], ["1 of 6 nodes"]),
        (["agent:1.0"], ["agent:1.1"]),
        (["node-0001"], ["node-0002"]),
        (["a", "…"], ["b", "a"]),
    ],
)
def test_what_must_not_differ_is_seen(shown: list[str], printed: list[str]) -> None:
    assert not agrees(shown, printed)


def test_commands_are_read_with_what_they_print() -> None:
    text = """
```console
$ one \\
>   more
first
$ two
```
```text
$ three
```
<!-- not run: elsewhere -->
```console
$ four
```
<!-- fails: it must -->
```console
$ five
no
```
"""
    steps = read_steps(text)
    assert [(step.command, step.shown, step.fails) for step in steps] == [
        ("one \\\n  more", ["first"], False),
        ("two", [], False),
        ("five", ["no"], True),
    ]
