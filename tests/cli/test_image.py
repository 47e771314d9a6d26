"""`everynode image`: break and mend images of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everynode.cli.image import command
from everynode.components.kubelet.image_config import (
    CONFIG_MAPS,
    IMAGE_CONFIG_KEY,
    IMAGE_CONFIG_NAME,
    IMAGE_CONFIG_NAMESPACE,
)
from everynode.kube import verbs
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder: Path = tmp_path_factory.mktemp("up")
    with started(folder, "--nodes", "1") as running:
        yield running


def lines(up: Up) -> list[str]:
    [found] = ask(up, verbs.get(CONFIG_MAPS, IMAGE_CONFIG_NAME, namespace=IMAGE_CONFIG_NAMESPACE))
    return str(found["data"][IMAGE_CONFIG_KEY]).splitlines()


def test_images_fail_as_asked_and_are_mended(up: Up) -> None:
    assert typed(command, up, "fail", "agent:v2").stdout == "image agent:v2 fails (crash)\n"
    assert typed(command, up, "fail", "agent:v3", "--how", "pull").exit_code == 0
    assert lines(up) == ["agent:v2 fail=crash", "agent:v3 fail=pull"]
    assert typed(command, up, "fail", "agent:v2", "--how", "probe").exit_code == 0
    assert lines(up) == ["agent:v3 fail=pull", "agent:v2 fail=probe"]
    assert typed(command, up, "fix", "agent:v3").stdout == "image agent:v3 works\n"
    assert typed(command, up, "fix", "agent:non-existent").exit_code == 0
    assert lines(up) == ["agent:v2 fail=probe", "agent:non-existent fail=none"]


def test_an_image_fails_on_the_nodes_that_are_named(up: Up) -> None:
    said = typed(command, up, "fail", "agent:v4", "--on", "node-0001", "--on", "node-0002").stdout
    assert said == "image agent:v4 fails (crash) on node-0001, node-0002\n"
    assert lines(up)[-1] == "agent:v4 fail=crash on=node-0001,node-0002"
    assert typed(command, up, "fail", "agent:v4", "--on", "a,b").exit_code != 0
    assert typed(command, up, "fix", "agent:v4").exit_code == 0


@pytest.mark.parametrize("wrong", ["two words", "", "#comment"])
def test_what_is_no_image_is_refused(up: Up, wrong: str) -> None:
    result = typed(command, up, "fail", wrong)
    assert str(result.exception).endswith("is not the name of an image")
