"""kubectl sessions: runs scripts against a cluster and makes their output comparable.

A script is a file of shell lines. Each is run as it is; a line that begins with `!` must fail, all
others must succeed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.support.paths import ROOT

HERE: Final = ROOT / "tests" / "kubectl"
SCRIPTS: Final = sorted((HERE / "scripts").glob("*.sh"))
_PATIENCE: Final = 90.0
_SORTED: Final = "| sort"
_CREATED: Final = " SuccessfulCreate "

# Text that differs between clusters, and its placeholder.
_STAND_INS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \+\d{4}( \S+)?"), "TIME"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r'(resourceVersion"?: ?)"\d+"'), r'\1"VERSION"'),
    (re.compile(r"(https://127\.0\.0\.1):\d+"), r"\1:PORT"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"(containerd://)[0-9a-f]{64}"), r"\1ID"),
    (re.compile(r"/tmp/[\w.-]+"), "FILE"),
    # The names of pods, and events named after their object and a time.
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{13}\b"), "-SUFFIX"),
    (re.compile(r"\.[0-9a-f]{14,16}\b"), ".MOMENT"),
    (re.compile(r"\b(\d+[ydhms]){1,2}( \(x\d+ over (\d+[ydhms]){1,2}\))?(?=\s|$|\))"), "AGE"),
    (re.compile(r"(?<=\S)  +"), "  "),
)


class Typed(NamedTuple):
    """A line that was run, with its output and exit code."""

    line: str
    code: int
    output: str

    def __str__(self) -> str:
        return f"$ {self.line}\n{self.output}[{self.code}]"


@dataclass(frozen=True)
class Terminal:
    """A shell with a given kubectl and the kubeconfig of a given cluster."""

    kubectl: Path  # the folder of the binary
    kubeconfig: Path
    home: Path

    def environment(self, namespace: str) -> dict[str, str]:
        """The environment variables of the shell and kubectl."""
        return {
            "PATH": f"{self.kubectl}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "KUBECONFIG": str(self._config_for(namespace)),
            "NAMESPACE": namespace,
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def _config_for(self, namespace: str) -> Path:
        """A copy of the cluster's kubeconfig whose context has this namespace."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = namespace
        path = self.home / f"{self.kubeconfig.parent.name}-{namespace}"
        path.write_text(yaml.safe_dump(config))
        return path

    def popen(self, line: str, namespace: str) -> subprocess.Popen[str]:
        """Start a line without waiting for it to end."""
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=HERE / "manifests",
            env=self.environment(namespace),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, line: str, namespace: str) -> Typed:
        """Run a line and wait for its output."""
        started = self.popen(line, namespace)
        try:
            output, _ = started.communicate(timeout=_PATIENCE)
        finally:
            started.kill()
        return Typed(line, started.returncode, output)

    def play(self, script: Path, namespace: str) -> Iterator[Typed]:
        """Run a script line by line, until one does not succeed or fail as expected."""
        for line in lines_of(script):
            typed = self.type(line.removeprefix("! "), namespace)
            yield typed
            assert (typed.code != 0) == line.startswith("! "), str(typed)


def lines_of(script: Path) -> list[str]:
    """The lines of a script to run; a backslash joins a line with the next."""
    text = script.read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def comparable(typed: Typed) -> str:
    """The output, with placeholders for text that differs between clusters."""
    lines = _in_one_order([_stand_in(line) for line in typed.output.splitlines()])
    if typed.line.endswith(_SORTED):
        lines.sort()  # they were sorted by text that is now replaced
    return "\n".join([f"$ {typed.line}", *lines, f"[{typed.code}]"])


def _in_one_order(lines: list[str]) -> list[str]:
    """The lines, with events of created pods sorted: those of a batch come in any order."""
    together = groupby(lines, lambda line: _CREATED in line)
    return [line for created, group in together for line in (sorted(group) if created else group)]


def _stand_in(line: str) -> str:
    for pattern, replacement in _STAND_INS:
        line = pattern.sub(replacement, line)
    return line.rstrip()
