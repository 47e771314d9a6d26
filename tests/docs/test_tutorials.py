"""Every command of the documentation is executed, and does what the page says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.api.versions import decode_daemonset
from everynode.localkube import binaries
from tests.support.kubernetes import find_old_kubectl, lacking
from tests.support.paths import ROOT
from tests.support.tutorial import agrees, check_page, cluster, read_steps

PAGES = sorted((ROOT / "docs").glob("*.md"))
EXECUTED = [page for page in PAGES if read_steps(page.read_text(encoding="utf-8"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def name(path: Path) -> str:
    return path.stem


def in_reading_order() -> list[Path]:
    """Return the pages that have commands, as the index names them; each once."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    named = dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", index))
    pages = [ROOT / "docs" / page for page in named]
    return [page for page in pages if read_steps(page.read_text(encoding="utf-8"))]


@dataclass(frozen=True)
class Shared:
    """The cluster that all pages share, and the folder of the kubectl they use with it."""

    kubeconfig: Path
    folder: Path
    kubectl: Path | None


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    kubectl = None
    if request.param == "oldest":
        try:
            kubectl = find_old_kubectl().parent
        except binaries.BinariesMissingError as error:
            lacking(str(error))
    folder = tmp_path_factory.mktemp("tutorials")
    with cluster(folder) as kubeconfig:
        yield Shared(kubeconfig, folder, kubectl)


def with_kubectl(which: str, *marks: pytest.MarkDecorator, pages: list[Path]) -> list[Any]:
    """Return the cases of one cluster; they run one after the other."""
    group = pytest.mark.xdist_group(f"tutorials-{which}-kubectl")
    return [
        pytest.param(which, page, marks=[group, *marks], id=f"{which}-{page.stem}")
        for page in pages
    ]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
@pytest.mark.parametrize(
    ("shared", "page"),
    [
        *with_kubectl("current", pages=in_reading_order()),
        *with_kubectl(
            "oldest",
            pytest.mark.kubernetes,
            pages=[
                page
                for page in in_reading_order()
                if "$ kubectl" in page.read_text(encoding="utf-8")
            ],
        ),
    ],
    indirect=["shared"],
    scope="module",
)
def test_a_page_does_what_it_says(page: Path, shared: Shared) -> None:
    check_page(page, shared.kubeconfig, shared.folder, kubectl=shared.kubectl)


def test_every_page_with_commands_is_in_the_index() -> None:
    assert {*in_reading_order()} == {*EXECUTED}


INDEXES = [ROOT / folder / "README.md" for folder in ("deploy", "examples")]


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md"), *INDEXES], ids=name)
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


def test_the_list_of_examples_names_each() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"]({path.name})" not in listed] == []


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
