"""A rolling update prints the lines of the original document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kubectl.conftest import NODES
from tests.support.kubectl_session import Terminal

pytestmark = pytest.mark.timeout(400)

IMAGE = "repository.test.com:8444/kubernetes/nginx/nginx:1.24.0"
SET_IMAGE = f"kubectl set image ds nginx-ds nginx-ds={IMAGE} --record=true"
WIDE = "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
WAITING = 'Waiting for daemon set "nginx-ds" rollout to finish: '
ROLLED_OUT = [
    *(f"{WAITING}{count} out of {NODES} new pods have been updated..." for count in range(NODES)),
    f"{WAITING}{NODES - 1} of {NODES} updated pods are available...",
    'daemon set "nginx-ds" successfully rolled out',
]
HISTORY = f"""daemonset.apps/nginx-ds
REVISION  CHANGE-CAUSE
1         <none>
2         {SET_IMAGE}
"""


class Line(NamedTuple):
    """A line of `kubectl get pod -o wide`, without what is different every time."""

    pod: str
    ready: str
    status: str
    node: str

    @classmethod
    def of(cls, text: str) -> Line:
        name, ready, status, _, _, _, node, *_ = text.split()
        return cls(name, ready, status, node)


@pytest.fixture(
    params=[
        "embedded",
        pytest.param("kubernetes", marks=pytest.mark.kubernetes),
    ]
)
def screen(request: pytest.FixtureRequest, kubectl: Path, home: Path) -> Iterator[Terminal]:
    """A shell with the document's DaemonSet on five nodes."""
    made = Terminal(kubectl, request.getfixturevalue(request.param), home)
    space = "documents"
    for line in (
        "kubectl create namespace documents",
        # Slow enough for every step to be printed.
        "kubectl annotate node --all sim.everynode.io/slow=5",
        "kubectl create -f nginx-ds.yaml",
        "kubectl rollout status ds nginx-ds",
    ):
        typed = made.type(line, space)
        assert typed.code == 0, str(typed)
    yield made
    made.type("kubectl annotate node --all sim.everynode.io/slow-", space)
    made.type("kubectl delete namespace documents", space)


def shown(screen: Terminal, line: str) -> str:
    typed = screen.type(line, "documents")
    assert typed.code == 0, str(typed)
    return typed.output


def words(line: str) -> str:
    return " ".join(line.split())


def without_repeats(lines: list[str]) -> list[str]:
    return [line for line, _ in groupby(lines)]


def test_an_update_is_shown_as_in_the_document(screen: Terminal) -> None:
    header, row = shown(screen, "kubectl get daemonset").splitlines()
    assert words(header) == "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE"
    assert re.fullmatch(r"nginx-ds 5 5 5 5 5 <none> \d+s", words(row))
    before = check_pods(shown(screen, "kubectl get pod -o wide"))
    watch = screen.popen("exec kubectl get pod -o wide -w", "documents")
    try:
        assert watch.stdout is not None
        first = [next(watch.stdout) for _ in range(1 + NODES)]  # it watches from here on
        assert check_pods("".join(first)) == before
        assert "image updated" in shown(screen, SET_IMAGE)
        check_rollout(shown(screen, "kubectl rollout status ds nginx-ds").splitlines())
        after = check_pods(shown(screen, "kubectl get pod -o wide"))
        rest = read_until_running(watch.stdout, set(after.values()))
    finally:
        watch.terminate()
        watch.communicate()
    check_watch(rest, before, after)
    assert re.sub(" +\n", "\n", shown(screen, "kubectl rollout history daemonset nginx-ds")) == (
        f"{HISTORY}\n"
    )
    check_revisions(shown(screen, "kubectl get controllerrevision -l app=nginx-ds"), "1", "2")
    shown(screen, "kubectl rollout undo daemonset nginx-ds --to-revision=1")
    shown(screen, "kubectl rollout status ds nginx-ds")
    check_revisions(shown(screen, "kubectl get controllerrevision -l app=nginx-ds"), "2", "3")
    # As one document prints it.
    typed = screen.type("kubectl get pods --label app=nginx-ds", "documents")
    assert typed.code == 1
    assert "unknown flag: --label" in str(typed)


def check_pods(output: str) -> dict[str, str]:
    """One running pod per node, by name; returns each node's pod."""
    header, *rows = output.splitlines()
    assert words(header) == WIDE
    lines = [Line.of(row) for row in rows]
    assert [line.pod for line in lines] == sorted(line.pod for line in lines)
    assert {(line.ready, line.status) for line in lines} == {("1/1", "Running")}
    assert all(row.endswith("<none>           <none>") for row in rows)
    return {line.node: line.pod for line in lines}


def check_rollout(lines: list[str]) -> None:
    """The lines of the document; who looks late misses the first of them."""
    told = without_repeats(
        [line for line in lines if line != "Waiting for daemon set spec update to be observed..."]
    )
    assert len(told) >= NODES
    assert told == ROLLED_OUT[-len(told) :]


def read_until_running(output: Iterable[str], pods: set[str]) -> list[str]:
    """The lines of a watch until it has shown all of these pods as running."""
    lines: list[str] = []
    for text in output:
        lines.append(text.rstrip("\n"))
        pods -= {line.pod for line in [Line.of(text)] if line.status == "Running"}
        if not pods:
            break
    return lines


def check_watch(output: list[str], before: dict[str, str], after: dict[str, str]) -> None:
    """Node after node: the old pod ends, the new one is pending, bound, created, running."""
    lines = [Line.of(text) for text in output if text.endswith("<none>")]
    # A pod that is Terminating stops being ready on the way: of repeated lines the last counts.
    told = [
        list(same)[-1]
        for _, same in groupby(lines, key=lambda line: (line.pod, line.status, line.node))
    ]
    nodes = [line.node for line in told if line.status == "Terminating"]
    assert sorted(nodes) == sorted(before)
    assert told == [
        line
        for node in nodes
        for line in (
            Line(before[node], "0/1", "Terminating", node),
            Line(after[node], "0/1", "Pending", "<none>"),
            Line(after[node], "0/1", "Pending", node),
            Line(after[node], "0/1", "ContainerCreating", node),
            Line(after[node], "1/1", "Running", node),
        )
    ]


def check_revisions(output: str, *numbers: str) -> None:
    header, *rows = output.splitlines()
    assert words(header) == "NAME CONTROLLER REVISION AGE"
    cells = [row.split() for row in rows]
    assert {cell[1] for cell in cells} == {"daemonset.apps/nginx-ds"}
    assert sorted(cell[2] for cell in cells) == list(numbers)
    assert all(re.fullmatch(r"nginx-ds-\w+", cell[0]) for cell in cells)
