"""Everything that people type at Kubernetes is understood, and answered as the real one does."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.kubectl.session import SCRIPTS, Terminal, comparable

# A script is some dozens of commands, each of which starts a program of 50 MB.
pytestmark = pytest.mark.timeout(400)

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
