"""The end-to-end suites of Kubernetes and OpenKruise for DaemonSets pass with Everynode at work,
and what Kubernetes asks of an API server besides."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.commands import started
from tests.support.kubernetes import lacking, programs
from tests.support.paths import ROOT

BUILD: Final = ROOT / "hack" / "suites" / "build"
NODES: Final = 4
ASKED: Final = (
    "ServerSideApply",
    "Watchers",
    "Namespaces should",
    "OrderedNamespaceDeletion",
    "FieldValidation.*of a typed object",
    "Server request timeout",
    "server version",
    "Table transformation",
    "should negotiate",
    "API Streaming",
    "Generated clientset should create pods",
    "Discovery should (accurately|validate)",
)
# What is answered in protobuf only, sends it for definitions, or needs kinds that are not served;
# and what only takes long.
LEFT_OUT: Final = (
    "metadatainformer",
    "metadata client",
    'accept "application/vnd.kubernetes.protobuf"',
    "for CRDs",
    "chunks",
    "delete fast",
    "reflector",
)
SUITES: Final = {
    # What restarts kubelets and control planes by logging in to machines has nothing to log in to.
    "kubernetes": (
        "--ginkgo.focus=Daemon set|ControllerRevision",
        "--ginkgo.skip=Restart",
        "--ginkgo.no-color",
    ),
    "kruise": ("--ginkgo.label-filter=DaemonSet", "--ginkgo.no-color"),
    "api": (
        f"--ginkgo.focus={'|'.join(ASKED)}",
        f"--ginkgo.skip={'|'.join(LEFT_OUT)}",
        "--ginkgo.no-color",
    ),
}
PROGRAMS: Final = {"api": "kubernetes"}  # others have one of their own
SPECS: Final = {"kubernetes": 11, "kruise": 14, "api": 37}
ENDING: Final = re.compile(r"(\d+) Passed \S+ 0 Failed")


def suite(name: str) -> Path:
    """The program that holds a peer's suite."""
    found = subprocess.run([BUILD, "--print", name], capture_output=True, text=True, check=False)
    if found.returncode:
        lacking(f"the suite of {name} is not built: run `make kubernetes`")
    return Path(found.stdout.strip())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(SUITES))
@pytest.mark.parametrize(
    "server", ["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)]
)
def test_suite_of_a_peer_passes(name: str, server: str, tmp_path: Path) -> None:
    program = suite(PROGRAMS.get(name, name))
    flags = ["--kubernetes"] if server == "kubernetes" else []
    if flags:
        programs()
    with started(tmp_path, f"--nodes={NODES}", *flags) as up:
        ran = subprocess.run(
            [program, *SUITES[name], "--provider=local"],
            env={**os.environ, "KUBECONFIG": str(up.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )
        up.stop()
    ended = ENDING.search(ran.stdout)
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert ended is not None
    assert int(ended[1]) == SPECS[name]
