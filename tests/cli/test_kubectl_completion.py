from __future__ import annotations

import sys

import pytest

from everynode.cli.kubectl_completion import main
from tests.support.commands import Up


def completed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kubectl_complete-everynode", *words])
        main()
    *found, directive = capsys.readouterr().out.splitlines()
    assert directive == ":4"  # no file names
    return found


def test_kubectl_gets_commands_and_names(rollouts: Up, capsys: pytest.CaptureFixture[str]) -> None:
    assert completed(capsys, "hist") == ["history\tList revisions, or compare two."]
    access = ("--kubeconfig", str(rollouts.kubeconfig))
    names = completed(capsys, "status", *access, "")
    assert names == ["ads/net", "done", "ds/net", "held", "stuck"]
    assert completed(capsys, "why", *access, "node-0006") == ["node-0006"]
    assert completed(capsys, "why", *access, "node-0006", "st") == ["stuck"]
