"""The clusters that kubectl is tried on, started as a user starts them, and the kubectls."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everynode.localkube import binaries
from tests.support.kubectl_session import Terminal
from tests.support.kubernetes import REQUIRED, find_old_kubectl, lacking, programs

NODES = 5
_GONE_WITHIN = 60.0


@contextmanager
def up(folder: Path, *flags: str) -> Iterator[Path]:
    """`everynode up` until the end of the block; yields the kubeconfig that it wrote."""
    kubeconfig = folder / "kubeconfig"
    log = folder / "log"
    command = [sys.executable, "-m", "everynode", "up", f"--nodes={NODES}", "--speed=10", *flags]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*command, f"--kubeconfig={kubeconfig}"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            if not any(line == "ready\n" for line in process.stdout):
                pytest.fail(f"`everynode up` did not become ready:\n{log.read_text()}")
            yield kubeconfig
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_GONE_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the embedded cluster."""
    with up(tmp_path_factory.mktemp("embedded")) as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a real control plane with the same nodes and controller."""
    programs()
    with up(tmp_path_factory.mktemp("kubernetes"), "--kubernetes") as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the kubectls keep what they remember."""
    return tmp_path_factory.mktemp("home")


# Each kubectl keeps its clusters, and what was printed so far, in one process.
@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(f"kubectl-{name}"))
        for name in ("old", "current")
    ],
)
def kubectl(request: pytest.FixtureRequest) -> Path:
    """The folder of the oldest supported kubectl, and that of the current one."""
    try:
        if request.param == "old":
            return find_old_kubectl().parent
        return binaries.find(("kubectl",))
    except binaries.BinariesMissingError as error:
        found = shutil.which("kubectl")
        if found and request.param == "current" and not REQUIRED:
            return Path(found).parent
        lacking(str(error))


@pytest.fixture
def terminal(kubectl: Path, embedded: Path, home: Path) -> Terminal:
    """A shell for the embedded cluster."""
    return Terminal(kubectl, embedded, home)
