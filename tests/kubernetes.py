"""The real Kubernetes of the tests: where it comes from, and what happens where there is none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from everynode.cli.kubernetes import binaries
from everynode.cli.kubernetes.controlplane import ControlPlane, Options

REQUIRED: Final = os.environ.get("EVERYNODE_REQUIRE_KUBERNETES") == "1"


def programs(needed: Iterable[str] = binaries.CONTROL_PLANE) -> Path:
    """The folder of the real programs; without them the test is skipped, or fails if required."""
    try:
        return binaries.find(needed)
    except binaries.BinariesMissingError as error:
        lacking(str(error))


def lacking(reason: str) -> NoReturn:
    """Skip the test, or fail if there must be a real Kubernetes."""
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip("no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS")


@contextmanager
def running(options: Options | None = None) -> Iterator[ControlPlane]:
    """A control plane for as long as the block lasts, in loops of their own."""
    plane = ControlPlane(options)
    programs(plane.options.components)
    with asyncio.Runner() as runner:
        runner.run(plane.start())
        try:
            yield plane
        finally:
            runner.run(plane.stop())
