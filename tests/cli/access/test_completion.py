from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from everynode.cli.access.completion import (
    complete_context,
    complete_daemonset,
    complete_daemonset_and_kind,
    complete_namespace,
    complete_node,
)
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS
from tests.cli.access.test_daemonset_names import manifest
from tests.cli.test_up import ask
from tests.support.commands import Up, started


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with started(tmp_path_factory.mktemp("up"), "--nodes", "2") as running:
        for resource, name in [(ADVANCED, "log"), (ADVANCED, "net"), (DAEMONSETS, "net")]:
            ask(running, verbs.create(resource, manifest(resource, name), namespace="default"))
        yield running


def typing(kubeconfig: Path | str, **given: str) -> click.Context:
    context = click.Context(click.Command("status"))
    context.params = {"kubeconfig": str(kubeconfig), **given}
    return context


PARAMETER = click.Argument(["name"])


def test_names_come_from_the_cluster(up: Up) -> None:
    context = typing(up.kubeconfig)
    names = [item.value for item in complete_daemonset(context, PARAMETER, "")]
    assert names == ["ads/net", "ds/net", "log"]  # net is of both kinds
    assert [item.value for item in complete_daemonset(context, PARAMETER, "ads/")] == [
        "ads/log",
        "ads/net",
    ]
    assert [item.value for item in complete_node(context, PARAMETER, "node-0002")] == ["node-0002"]
    spaces = [item.value for item in complete_namespace(context, PARAMETER, "kube-s")]
    assert spaces == ["kube-system"]
    contexts = [item.value for item in complete_context(context, PARAMETER, "")]
    assert contexts == ["everynode"]
    typed = [item.value for item in complete_daemonset_and_kind(context, PARAMETER, "")]
    assert typed == ["ads/log", "ads/net", "ds/net"]
    elsewhere = typing(up.kubeconfig, namespace="kube-system")
    assert complete_daemonset(elsewhere, PARAMETER, "") == []


def test_a_cluster_that_cannot_be_reached_offers_nothing(tmp_path: Path) -> None:
    missing = typing(tmp_path / "missing")
    assert complete_node(missing, PARAMETER, "") == complete_context(missing, PARAMETER, "") == []
