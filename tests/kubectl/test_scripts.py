"""Scripts of kubectl commands print the same on the embedded and on a real cluster."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.support.kubectl_session import SCRIPTS, Terminal, comparable

# A script is some dozens of commands, each of which starts a program of 50 MB.
pytestmark = pytest.mark.timeout(900)

Played = dict[tuple[Path, Path, Path], list[str]]


@pytest.fixture(scope="session")
def played() -> Played:
    """What was printed so far, so that no script is typed twice."""
    return {}


def play(terminal: Terminal, script: Path, played: Played) -> list[str]:
    key = (terminal.kubectl, terminal.kubeconfig, script)
    if key not in played:
        namespace = f"{script.stem}-{len(played)}"
        made = terminal.type(f"kubectl create namespace {namespace}", namespace)
        assert made.code == 0, str(made)
        printed = [comparable(typed) for typed in terminal.play(script, namespace)]
        played[key] = [text.replace(namespace, "NAMESPACE") for text in printed]
    return played[key]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_command_does_what_it_should(
    terminal: Terminal, played: Played, script: Path
) -> None:
    assert play(terminal, script, played)


@pytest.mark.kubernetes
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_command_prints_what_real_kubernetes_prints(
    terminal: Terminal, kubernetes: Path, played: Played, script: Path
) -> None:
    ours = play(terminal, script, played)
    real = play(Terminal(terminal.kubectl, kubernetes, terminal.home), script, played)
    diff = [
        line
        for one, other in zip(real, ours, strict=True)
        for line in unified_diff(
            one.splitlines(), other.splitlines(), "real", "ours", lineterm="", n=30
        )
    ]
    assert not diff, "\n".join(diff)


def test_logs_say_that_nothing_really_runs(terminal: Terminal) -> None:
    space = f"logs-{terminal.kubectl.parent.name.replace('.', '-')}"
    for line in (
        f"kubectl create namespace {space}",
        "kubectl run single --image=single:1",
        "kubectl wait pod/single --for=condition=Ready --timeout=120s",
    ):
        typed = terminal.type(line, space)
        assert typed.code == 0, str(typed)
    for line in ("kubectl logs single", "kubectl logs -f single -c single --tail=5"):
        typed = terminal.type(line, space)
        assert typed.code == 0, str(typed)
        assert "is simulated" in typed.output
    refused = terminal.type("kubectl logs single -c other", space)
    assert refused.code != 0
    assert "container other is not valid for pod single" in refused.output
    described = terminal.type(
        "kubectl create deployment idle --image=idle:1 && kubectl describe deployment idle", space
    )
    assert "makes no pods of them" in described.output, str(described)
    terminal.type(f"kubectl delete namespace {space}", space)
