"""The plugin that krew installs runs without an environment of its own, and can be removed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import everynode
from tests.support.gitops import tool
from tests.support.kubernetes import programs
from tests.support.paths import ROOT
from tests.support.wheels import ARCHITECTURE, locked_wheels

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("krew")]
PYTHON = f"3.{sys.version_info.minor}"
BUILD = ROOT / "hack" / "krew" / "build"


@dataclass(frozen=True)
class Shell:
    """A shell of a person who has kubectl, krew and a Python, and what was built for them."""

    home: Path
    built: Path

    @property
    def manifest(self) -> Path:
        return self.built / "everynode.yaml"

    @property
    def archive(self) -> Path:
        (found,) = self.built.glob("*.tar.gz")
        return found

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.home),
            "KREW_NO_UPGRADE_CHECK": "1",
            "KREW_DEFAULT_INDEX_URI": str(self.home / "index"),
            "PATH": f"{self.home}/bin:{self.home}/.krew/bin:/usr/bin:/bin",
        }
        return subprocess.run(
            command, env=environment, cwd=self.home, capture_output=True, text=True, timeout=60
        )

    def kubectl(self, *arguments: str) -> str:
        done = self.run(str(self.home / "bin" / "kubectl"), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, manifest: Path) -> subprocess.CompletedProcess[str]:
        krew = (str(self.home / "bin" / "kubectl-krew"), "install")
        return self.run(*krew, f"--manifest={manifest}", f"--archive={self.archive}")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    locked_wheels(f"linux/{ARCHITECTURE}", PYTHON)
    home = tmp_path_factory.mktemp("krew")
    (home / "bin").mkdir()
    (home / "bin" / "kubectl").symlink_to(programs(("kubectl",)) / "kubectl")
    (home / "bin" / "kubectl-krew").symlink_to(tool("krew"))
    # The one that this environment was made with: it has none of our packages.
    (home / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    line = [sys.executable, str(BUILD), "--url", "https://example.test/releases"]
    line += ["--platform", f"linux/{ARCHITECTURE}", "--python", PYTHON, str(home / "built")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = Shell(home, home / "built")
    publish(made)
    return made


def publish(shell: Shell) -> None:
    """Make an index of plugins that has this one only; krew keeps a clone of it."""
    plugins = shell.home / "index" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(shell.manifest, plugins)
    git = ("git", "-C", str(plugins.parent), "-c", "user.name=test", "-c", "user.email=t@t.test")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "plugins")):
        subprocess.run([*git, *words], check=True)
    shell.kubectl("krew", "update")


def test_krew_refuses_an_archive_that_is_not_the_one_of_the_manifest(
    shell: Shell, tmp_path: Path
) -> None:
    manifest: dict[str, Any] = yaml.safe_load(shell.manifest.read_text())
    manifest["spec"]["platforms"][0]["sha256"] = "0" * 64
    (tmp_path / "everynode.yaml").write_text(yaml.safe_dump(manifest))
    done = shell.install(tmp_path / "everynode.yaml")
    assert done.returncode != 0
    assert "checksum does not match" in done.stderr


def test_the_installed_plugin_runs_and_completes_and_goes(shell: Shell) -> None:
    done = shell.install(shell.manifest)
    assert done.returncode == 0, done.stderr
    assert f"VERSION: v{everynode.__version__}" in shell.kubectl("krew", "info", "everynode")
    version = shell.kubectl("everynode", "--version")
    assert version == f"everynode, version {everynode.__version__}\n"
    help_text = shell.kubectl("everynode", "--help")
    assert help_text.startswith("Usage: kubectl everynode [OPTIONS] COMMAND")
    example = ROOT / "examples" / "05-canary-by-selector.yaml"
    assert shell.kubectl("everynode", "lint", "-f", str(example))

    # As the manifest says to the one who installs it.
    (link,) = [line for line in done.stderr.splitlines() if " ln -s " in line]
    shell.run("/bin/sh", "-c", link.strip(" |\\"))
    completed = shell.kubectl("__complete", "everynode", "hist")
    assert completed.splitlines()[0] == "history\tList revisions, or compare two."

    shell.kubectl("krew", "uninstall", "everynode")
    assert shell.run(str(shell.home / "bin" / "kubectl"), "everynode").returncode != 0


def test_a_python_that_is_too_old_gets_one_line(shell: Shell, tmp_path: Path) -> None:
    """An interpreter that says it is old stands in for one that is."""
    launcher = ROOT / "hack" / "krew" / "kubectl-everynode"
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 2); "
        f"sys.argv = [{str(launcher)!r}]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "kubectl-everynode: it needs Python 3.11 to 3.14, and python3 is 3.9: "
        "install one of them, so that it is on the PATH\n"
    )
