"""The wheel has everything that its programs need and nothing else, and kubectl finds them."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

import everynode
from everynode.cli.main import COMMANDS, all_commands
from everynode.localkube import binaries
from tests.support import wheel
from tests.support.commands import started
from tests.support.kubernetes import find_old_kubectl, lacking
from tests.support.paths import ROOT
from tests.support.wheels import locked_wheels

# One environment is enough for all of them.
pytestmark = pytest.mark.xdist_group("wheel")
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(built: Path) -> Path:
    return wheel.install(built, built.parent / "environment")


def run(programs: Path, *command: str) -> str:
    """Run a program in an environment that knows nothing of this one."""
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(programs.parent)}
    done = subprocess.run(
        [str(programs / command[0]), *command[1:]],
        cwd=programs.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "__complete" not in command:  # of which kubectl says there what it did
        assert done.stderr == ""
    return done.stdout


def test_it_holds_the_package_with_its_data_and_nothing_else(built: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "everynode"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    with zipfile.ZipFile(built) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {name for name in listed if (SOURCE / name).exists()}
    assert {"everynode/api/types.json", "everynode/dashboard/page/index.html"} < held


def test_it_requires_what_is_locked(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        text = archive.read(f"everynode-{everynode.__version__}.dist-info/METADATA").decode()
    required = [line.split()[1] for line in text.splitlines() if line.startswith("Requires-Dist:")]
    locked = (ROOT / "requirements" / "run.txt").read_text()
    for each in required:
        name = each.partition(">")[0].rstrip(";")
        assert f"\n{name}==" in f"\n{locked}", each


def test_its_program_answers(programs: Path) -> None:
    printed = run(programs, "everynode", "--help")
    assert all(line.line in printed for group in COMMANDS.values() for line in group.values())
    assert (
        run(programs, "everynode", "--version") == f"everynode, version {everynode.__version__}\n"
    )
    assert "kind: CustomResourceDefinition" in run(programs, "everynode", "install", "--print")


def test_its_completion_answers(programs: Path) -> None:
    *found, directive = run(programs, "kubectl_complete-everynode", "").splitlines()
    assert [line.partition("\t")[0] for line in found][: len(all_commands())] == all_commands()
    assert directive == ":4"  # no file names


@pytest.fixture(params=["old", "current"])
def kubectl(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Path:
    """The programs of the wheel beside one of the kubectls that are supported."""
    try:
        if request.param == "old":
            found = find_old_kubectl()
        else:
            found = binaries.find(("kubectl",)) / "kubectl"
    except binaries.BinariesMissingError as error:
        lacking(str(error))
    folder = tmp_path / "bin"
    folder.mkdir()
    for each in (found, programs / "kubectl-everynode", programs / "kubectl_complete-everynode"):
        (folder / each.name).symlink_to(each)
    return folder


@pytest.mark.kubernetes
def test_kubectl_lists_and_runs_the_plugin(kubectl: Path) -> None:
    assert str(kubectl / "kubectl-everynode") in run(kubectl, "kubectl", "plugin", "list")
    printed = run(kubectl, "kubectl", "everynode", "--help")
    assert printed.startswith("Usage: kubectl everynode [OPTIONS] COMMAND")


@pytest.mark.kubernetes
def test_kubectl_completes_commands_and_names(kubectl: Path, tmp_path: Path) -> None:
    complete = ("kubectl", "__complete", "everynode")
    assert (
        run(kubectl, *complete, "hist").splitlines()[0]
        == "history\tList revisions, or compare two."
    )
    with started(tmp_path, "--nodes", "2", "--port", "0") as up:
        why = (*complete, "why", "--kubeconfig", str(up.kubeconfig), "")
        assert run(kubectl, *why).splitlines() == ["node-0001", "node-0002", ":4"]


@pytest.mark.kubernetes  # as all that is downloaded before the tests
@pytest.mark.parametrize("platform", ["linux/amd64", "linux/arm64"])
def test_every_locked_dependency_has_a_wheel_with_a_known_hash(platform: str) -> None:
    wheels = locked_wheels(platform)
    text = (ROOT / "requirements" / "run.txt").read_text()
    locked = {name.replace("-", "_") for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    assert {each.name.partition("-")[0] for each in wheels} == locked
    for each in wheels:
        assert hashlib.sha256(each.read_bytes()).hexdigest() in text, each.name
