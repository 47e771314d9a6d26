from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from everynode.cli.doctor import command
from everynode.kube import verbs
from everynode.kube.resources import CRDS
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with started(tmp_path_factory.mktemp("doctor"), "--nodes", "0") as running:
        yield running


def test_warnings_are_printed_and_the_exit_code_is_0(up: Up) -> None:
    result = typed(command, up, "-n", "agents")
    assert result.exit_code == 0
    assert result.stdout == (
        "warning: no controller is installed in namespace agents; run `everynode install --image "
        "IMAGE`, or `everynode run`, or say where it is with --namespace\n"
    )
    assert result.stderr == "0 errors, 1 warning\n"


def test_an_error_gives_exit_code_1_and_programs_get_json(up: Up) -> None:
    name = "daemonsets.apps.kruise.io"
    patch = {"metadata": {"annotations": {"controller-gen.kubebuilder.io/version": "v0.16.5"}}}
    ask(up, verbs.patch(CRDS, name, patch))
    result = typed(command, up, "-o", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["notChecked"] == []
    first = document["items"][0]
    assert (first["severity"], first["check"]) == ("error", "crd")
    assert first["message"] == f"{name} was installed by OpenKruise"
    assert "everynode install --adopt-crd" in first["remedy"]
