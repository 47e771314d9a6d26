"""kube-state-metrics shows Advanced DaemonSets by the configuration in deploy/."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED
from tests.support.commands import started
from tests.support.gitops import tool
from tests.support.paths import ROOT
from tests.support.processes import listening
from tests.support.prometheus import eventually
from tests.support.stage import daemonset

pytestmark = pytest.mark.kubernetes
CONFIG: Final = ROOT / "deploy" / "kube-state-metrics" / "everynode.yaml"
PREFIX: Final = "kube_advanced_daemonset_"


@contextmanager
def kube_state_metrics(kubeconfig: Path) -> Iterator[Callable[[], str]]:
    """Run the real program; return a function that reads its two ports."""
    line = [str(tool("kube-state-metrics")), "--host=127.0.0.1", "--telemetry-host=127.0.0.1"]
    line += ["--port=0", "--telemetry-port=0", f"--kubeconfig={kubeconfig}"]
    line += ["--custom-resource-state-only", f"--custom-resource-state-config-file={CONFIG}"]
    log = kubeconfig.with_name("kube-state-metrics.log")
    with log.open("wb") as output:
        process = subprocess.Popen(line, stdout=output, stderr=output)

    def read() -> str:
        assert process.poll() is None, log.read_text()
        urls = [f"http://{each.host}:{each.port}/metrics" for each in listening(process.pid)]
        return "".join(urllib.request.urlopen(url, timeout=30).read().decode() for url in urls)

    try:
        yield read
    finally:
        process.kill()
        process.wait()


async def test_every_metric_of_the_configuration_has_the_numbers_of_the_status(
    tmp_path: Path,
) -> None:
    [resource] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["spec"]["resources"]
    wanted = {PREFIX + metric["name"] for metric in resource["metrics"]}
    with (
        started(tmp_path, "--nodes", "3", "--speed", "50") as up,
        kube_state_metrics(up.kubeconfig) as read,
    ):
        async with open_cluster(ClusterOptions(str(up.kubeconfig))) as cluster:
            manifest = daemonset("agent", rolling={"maxUnavailable": 1})
            await cluster.client.write(verbs.create(ADVANCED, manifest, namespace="default"), bytes)
        complete = re.compile(r'status_condition\{[^}]*condition="Complete"[^}]*\} 1\b')

        def once_complete() -> str:
            text = read()
            return text if complete.search(text) else ""

        text = eventually(once_complete, "complete rollout")
    series = dict(re.findall(rf"^({PREFIX}\w+)\{{[^}}]*\}} (\S+)$", text, re.MULTILINE))
    assert {*series} == wanted
    for name in ("desired_number_scheduled", "number_available", "updated_number_scheduled"):
        assert series[f"{PREFIX}status_{name}"] == "3"
    assert series[f"{PREFIX}status_number_unavailable"] == "0"
    assert series[f"{PREFIX}spec_paused"] == "0"
    assert 'daemonset="agent"' in text
    assert 'namespace="default"' in text
