"""The wheel of Everynode in an environment of its own, as `pip install .` leaves it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.support.paths import ROOT


def build(folder: Path) -> Path:
    """Build the wheel into a folder with the hatchling of this environment."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new environment; return the folder of its programs.

    Its dependencies are those of this environment, so that nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    pip = (sys.executable, "-m", "pip", "--python", str(programs / "python"))
    _run(*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
