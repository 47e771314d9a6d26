"""Real Kubernetes for tests: finds its binaries; without them tests are skipped or fail."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from everynode.localkube import binaries
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions

OLD_KUBECTL_RELEASE: Final = "v1.28.15"  # the oldest one that Everynode supports
REQUIRED: Final = os.environ.get("EVERYNODE_REQUIRE_KUBERNETES") == "1"


def programs(needed: Iterable[str] = binaries.CONTROL_PLANE) -> Path:
    """The folder of the real binaries; without them the test is skipped, or fails if required."""
    try:
        return binaries.find(needed)
    except binaries.BinariesMissingError as error:
        lacking(str(error))


def find_old_kubectl(environ: Mapping[str, str] | None = None) -> Path:
    """The oldest kubectl that Everynode supports."""
    folder = binaries.cache_folder(OLD_KUBECTL_RELEASE, os.environ if environ is None else environ)
    if binaries.missing(folder, ("kubectl",)):
        raise binaries.BinariesMissingError(
            f"kubectl {OLD_KUBECTL_RELEASE} is not in {folder}: run hack/kubectl-old/build."
        )
    return folder / "kubectl"


def previous_program(name: str) -> Path:
    """A program of the release before the current one; without it the test is skipped."""
    try:
        return binaries.find_previous(name)
    except binaries.BinariesMissingError as error:
        lacking(str(error), "no API server of the release before: run `make kubernetes-1.36`")


def lacking(reason: str, skipped: str = "") -> NoReturn:
    """Skip the test, or fail if real Kubernetes is required."""
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(
        skipped or "no real Kubernetes here: run `make kubernetes` or set KUBEBUILDER_ASSETS"
    )


@contextmanager
def running(options: ControlPlaneOptions | None = None) -> Iterator[ControlPlane]:
    """Run a control plane while the context lasts."""
    plane = ControlPlane(options)
    programs(plane.options.components)
    with asyncio.Runner() as runner:
        runner.run(plane.start())
        try:
            yield plane
        finally:
            runner.run(plane.stop())
