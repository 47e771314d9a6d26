"""The Makefile on machines where something is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.paths import ROOT

# What a make around the tests would have this one print, and how.
_OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def make(folder: Path, *variables: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    return subprocess.run(
        ["make", "venv", f"VENV={folder}/venv", *variables],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_python_that_is_missing_is_named_in_one_line(tmp_path: Path) -> None:
    made = make(tmp_path, "PYTHON=python9")
    assert made.stdout == (
        "Everynode needs Python 3.11 or newer, and python9 is missing or older: "
        "make venv PYTHON=/path/to/python3.11\n"
    )
    assert made.returncode
    assert len(made.stderr.splitlines()) == 1  # what make itself says


def test_without_an_index_it_says_which_settings_help(tmp_path: Path) -> None:
    here = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    made = make(tmp_path, PIP_NO_CACHE_DIR="1", PIP_CONFIG_FILE=os.devnull, **here)
    assert made.returncode
    assert made.stdout.splitlines()[-1].startswith("pip cannot install; its reason is above.")
    assert not (tmp_path / "venv" / ".running").exists()
