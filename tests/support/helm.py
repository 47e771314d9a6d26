"""Helm 3 and 4, as hack/gitops/build builds them, and the chart of deploy/helm."""

from __future__ import annotations

import subprocess
from typing import Any, Final

import yaml

from tests.support.gitops import tool
from tests.support.paths import ROOT

CHART: Final = ROOT / "deploy" / "helm" / "everynode"
HELMS: Final = ("helm", "helm3")
NAMESPACE: Final = "everynode-system"
# The oldest that is supported. Helm knows a newest one only if it is built by its own Makefile.
WITHOUT_CLUSTER: Final = ("--kube-version", "1.30.0", "--namespace", NAMESPACE)


def run_helm(helm: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the two Helms to its end."""
    line = [str(tool(helm)), *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)


def render(helm: str, *values: str) -> list[dict[str, Any]]:
    """Return the objects of the chart with these values, without a cluster."""
    given = [word for value in values for word in ("--set", value)]
    done = run_helm(helm, "template", "everynode", str(CHART), *WITHOUT_CLUSTER, *given)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]
