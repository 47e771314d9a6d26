"""A real Prometheus scrapes a controller: the alerts and the dashboard find all they ask for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED
from tests.support.commands import started
from tests.support.paths import ROOT
from tests.support.processes import Address
from tests.support.prometheus import (
    Prometheus,
    address_of,
    eventually,
    needs_prometheus,
    prometheus,
)
from tests.support.stage import daemonset

RULES: Final = ROOT / "deploy" / "prometheus" / "everynode-rules.yaml"
DASHBOARD: Final = json.loads(
    (ROOT / "deploy" / "grafana" / "everynode.json").read_text(encoding="utf-8")
)
# A word with an underscore that is not called, as functions are; no label of ours has one.
METRIC: Final = re.compile(r"\b[a-z]+_\w+\b(?!\s*\()")
pytestmark = needs_prometheus


@contextmanager
def controller(folder: Path, kubeconfig: Path) -> Iterator[Address]:
    """Run `everynode run` in a process; return where its metrics are."""
    command = [sys.executable, "-m", "everynode", "run", "--kubeconfig", str(kubeconfig)]
    command += ["--no-leader-elect", "--health-address", "0", "--metrics-address", "127.0.0.1:0"]
    with (folder / "controller.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield address_of(process)
    finally:
        process.kill()
        process.wait()


async def apply_two_daemonsets(kubeconfig: Path) -> None:
    """The image of one exists, that of the other does not."""
    async with open_cluster(ClusterOptions(str(kubeconfig))) as cluster:
        for name, image in (("fine", "agent:v1"), ("stuck", "non-existent:v1")):
            manifest = daemonset(name, image=image, rolling={"maxUnavailable": 1})
            await cluster.client.write(verbs.create(ADVANCED, manifest, namespace="default"), bytes)


def expressions() -> dict[str, str]:
    """Return the expressions of all alerts and panels, by name; variables select everything."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    for panel in DASHBOARD["panels"]:
        for number, target in enumerate(panel["targets"]):
            text = re.sub(r"\$(namespace|daemonset)\b", ".*", target["expr"])
            found[f"{panel['title']} {number}"] = text
    return found


async def test_a_real_prometheus_finds_every_metric_and_notices_a_stuck_rollout(
    tmp_path: Path,
) -> None:
    with (
        started(tmp_path, "--no-controller", "--speed", "50") as up,
        controller(tmp_path, up.kubeconfig) as address,
        prometheus(tmp_path, scrapes=address, rules=RULES) as scraper,
    ):
        await apply_two_daemonsets(up.kubeconfig)
        # It waits its ten minutes, which promtool plays: pending is all that can be seen at once.
        eventually(lambda: is_pending(scraper, "EverynodeRolloutStuck"), "pending alert")
        assert {"stuck"} == {
            alert["labels"]["daemonset"]
            for alert in scraper.rules()["EverynodeRolloutStuck"]["alerts"]
        }
        assert {rule["health"] for rule in scraper.rules().values()} == {"ok"}
        for name, expression in expressions().items():
            if not name.startswith("Everynode"):  # an alert has no series while all is well
                eventually(partial(scraper.query, expression), f"series of {name}")
        exposed = scraper.names()
        for name, expression in expressions().items():
            used = {*METRIC.findall(expression)}
            assert used
            assert used <= exposed, name


def is_pending(scraper: Prometheus, alert: str) -> bool:
    rule = scraper.rules().get(alert)
    return rule is not None and rule["state"] == "pending"
