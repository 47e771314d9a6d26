"""The alerts of deploy/prometheus fire when they should, as a controller exposes its metrics."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.cli.main import all_commands
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, DAEMONSETS
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run
from tests.support.paths import ROOT
from tests.support.prometheus import PROMTOOL, needs_prometheus
from tests.support.stage import daemonset
from tests.support.transports import Revocable

RULES: Final = ROOT / "deploy" / "prometheus" / "everynode-rules.yaml"
ALERTS: Final = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}
MINUTES: Final = 40
NODES: Final = 6
STATES: Final = ("updated", "under_way", "held", "to_come")
KINDS: Final = {"apps/v1": DAEMONSETS, "apps.kruise.io/v1beta1": ADVANCED}


def named(metric: str, api_version: str = "", **labels: str) -> str:
    """Return the series of a metric, with the labels of the DaemonSet if a version is given."""
    if api_version:
        kind = "apps/v1" if api_version == "apps/v1" else "apps.kruise.io"
        labels |= {"namespace": "default", "daemonset": "agent", "kind": kind}
    text = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"everynode_{metric}{{{text}}}"


@dataclass(slots=True)
class Scrapes:
    """What Prometheus would have scraped: every sample, minute by minute; None if absent."""

    series: dict[str, list[float | None]] = field(default_factory=dict)
    minutes: int = 0

    def take(self, exposition: bytes) -> None:
        for family in text_string_to_metric_families(exposition.decode()):
            for sample in family.samples:
                if not sample.name.startswith("everynode_"):
                    continue  # of the process
                name = named(sample.name.removeprefix("everynode_"), **sample.labels)
                seen = self.series.setdefault(name, [])
                seen += [None] * (self.minutes - len(seen)) + [sample.value]
        self.minutes += 1

    def of(self, name: str) -> list[float]:
        """All values of a series; there must be one in every minute."""
        values = [value for value in self.series[name] if value is not None]
        assert len(values) == self.minutes
        return values


async def _play(
    loop: SimLoop, *, api_version: str, image: str, start: float, revoked: str = ""
) -> Scrapes:
    """Update all nodes one by one, and scrape the controller once a minute.

    The permission for the resource `revoked` is taken away from it as the update begins.
    """
    clock = SimClock(loop, "alerts")
    transport = LocalTransport(Api(clock=clock))
    client = Client(transport, clock)
    behaviour = Behaviour(start=start)
    components = Components(transport, clock, ComponentOptions(nodes=NODES, behaviour=behaviour))
    options = ControllerOptions(native=True, forgiving=False)
    permissions = Revocable(transport, revoked)
    controller = Controller(permissions, clock, options)
    tasks = [loop.create_task(work) for work in (components.run(), controller.run())]
    await components.ready()
    kind = KINDS[api_version]
    manifest = daemonset(api_version=api_version, rolling={"maxUnavailable": 1})
    await client.write(verbs.create(kind, manifest, namespace="default"), bytes)
    await clock.sleep(600)
    containers = [{"name": "agent", "image": image}]
    update = {"spec": {"template": {"spec": {"containers": containers}}}}
    await client.write(verbs.patch(kind, "agent", update, namespace="default"), bytes)
    permissions.revoked = True
    scrapes = Scrapes()
    for _ in range(MINUTES):
        await clock.sleep(60)
        scrapes.take(controller.metrics.exposition())
    for task in tasks:
        task.cancel()
    return scrapes


@cache
def bad_image(api_version: str, image: str = "non-existent:v2") -> Scrapes:
    loop = SimLoop()
    return run(_play(loop, api_version=api_version, image=image, start=1), loop=loop)


@cache
def slow_rollout(api_version: str) -> Scrapes:
    """Each node takes longer than four minutes, and all together more than twenty."""
    loop = SimLoop()
    return run(_play(loop, api_version=api_version, image="agent:v2", start=240), loop=loop)


@cache
def without_permission(resource: str) -> Scrapes:
    loop = SimLoop()
    play = _play(loop, api_version="apps/v1", image="agent:v2", start=1, revoked=resource)
    return run(play, loop=loop)


def longest_run(values: list[float]) -> int:
    """Return for how many scrapes in a row the value was 1."""
    return max(map(len, "".join(str(int(value)) for value in values).split("0")))


def wait_of(alert: str) -> int:
    """Return how many minutes an alert waits before it fires."""
    return int(ALERTS[alert]["for"].removesuffix("m"))


def test_every_alert_uses_metrics_that_a_controller_exposes() -> None:
    exposed = {name.partition("{")[0] for name in bad_image("apps/v1").series}
    assert {*ALERTS} == {
        "EverynodeRolloutStuck",
        "EverynodeControllerDown",
        "EverynodeStatusContested",
        "EverynodeCacheStale",
    }
    for rule in ALERTS.values():
        used = {*re.findall(r"\beverynode_\w+", rule["expr"])}
        assert used
        assert used <= exposed
        # `for` begins anew when a label changes: another replica of the controller is another one.
        assert re.search(r"absent\(|max by \((namespace, daemonset, kind|resource)\)", rule["expr"])


def test_the_operating_page_explains_every_metric_and_every_alert() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    words = re.findall(r"`\w+`", page)
    exposed = {name.partition("{")[0] for name in bad_image("apps/v1").series}
    ours = {re.sub("_(bucket|sum|count|created)$", "", name) for name in exposed}
    short = {name: name.removeprefix("everynode_daemonset") for name in ours}
    assert not [name for name in ours if not {f"`{name}`", f"`{short[name]}`"} & {*words}]
    assert not [alert for alert in ALERTS if f"`{alert}`" not in words]


def test_every_alert_says_what_to_type() -> None:
    for rule in ALERTS.values():
        typed = re.findall("`everynode (\\w+)", rule["annotations"]["description"])
        assert typed
        assert {*typed} <= {*all_commands()}


@pytest.mark.parametrize("api_version", KINDS)
def test_a_bad_image_is_stuck_on_its_first_node(api_version: str) -> None:
    scrapes = bad_image(api_version)
    stuck = scrapes.of(named("daemonset_blocked", api_version))
    assert longest_run(stuck) > wait_of("EverynodeRolloutStuck")
    assert stuck[-1] == 1
    nodes = {s: scrapes.of(named("daemonset_nodes", api_version, state=s))[-1] for s in STATES}
    assert nodes == {"updated": 0, "under_way": 1, "held": 0, "to_come": NODES - 1}
    reasons = ("ErrImagePull", "ImagePullBackOff")  # kubelets report them in turn
    waiting = [named("daemonset_waiting_nodes", api_version, reason=each) for each in reasons]
    assert any(scrapes.series[each][MINUTES - 1 :] == [1] for each in waiting)
    complete = named("daemonset_condition", api_version, condition="Complete")
    assert {*scrapes.of(complete)} == {0}
    started = scrapes.of(named("daemonset_rollout_start_timestamp_seconds", api_version))
    progress = scrapes.of(named("daemonset_last_progress_timestamp_seconds", api_version))
    assert len({*started, *map(int, progress)}) <= 2  # no node was updated since
    assert 0 <= progress[-1] - started[-1] < 10
    assert {*scrapes.of(named("daemonset_node_update_seconds_count", api_version))} == {0}


@pytest.mark.parametrize("image", ["crash-loop:v2", "never-ready:v2"])
def test_pods_that_never_become_ready_are_stuck_too(image: str) -> None:
    stuck = bad_image("apps/v1", image).of(named("daemonset_blocked", "apps/v1"))
    assert longest_run(stuck) > wait_of("EverynodeRolloutStuck")


@pytest.mark.parametrize("api_version", KINDS)
def test_a_slow_smooth_rollout_is_never_stuck(api_version: str) -> None:
    scrapes = slow_rollout(api_version)
    assert sum(scrapes.of(named("daemonset_blocked", api_version))) == 0
    updated = scrapes.of(named("daemonset_nodes", api_version, state="updated"))
    assert [*dict.fromkeys(updated)] == [*range(NODES + 1)]
    assert updated.index(NODES) > 2 * wait_of("EverynodeRolloutStuck")  # slow enough to tell
    started = named("daemonset_rollout_start_timestamp_seconds", api_version)
    assert len(scrapes.series[started]) < MINUTES  # gone when it is complete
    progress = scrapes.of(named("daemonset_last_progress_timestamp_seconds", api_version))
    assert len({*progress}) == NODES + 1
    assert scrapes.of(named("daemonset_node_update_seconds_count", api_version))[-1] == NODES
    seconds = scrapes.of(named("daemonset_node_update_seconds_sum", api_version))[-1] / NODES
    assert 240 < seconds < 300


# --- Evaluated by Prometheus-------------------------------------------------------------------


@needs_prometheus
def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run([PROMTOOL, "check", "rules", str(RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def fired(tmp_path: Path, alert: str, series: dict[str, str], *, at: str, times: int) -> None:
    """Let promtool say that the alert has fired this many times at that moment."""
    # Only how often it fires is compared: an expression over ALERTS counts it.
    expr = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    check = {"expr": expr, "eval_time": at, "exp_samples": [{"labels": "{}", "value": times}]}
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": text} for name, text in series.items()],
        "promql_expr_test": [check],
    }
    file = tmp_path / "test.json"  # which is YAML as well
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": [test]}), encoding="utf-8")
    command = [PROMTOOL, "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def notation(scrapes: Scrapes) -> dict[str, str]:
    return {
        name: " ".join("_" if value is None else f"{value:.0f}" for value in values)
        for name, values in scrapes.series.items()
        if name.startswith(("everynode_daemonset", "everynode_leader", "everynode_cache"))
    }


@needs_prometheus
@pytest.mark.parametrize("api_version", KINDS)
def test_prometheus_tells_a_stuck_rollout_from_a_slow_one(tmp_path: Path, api_version: str) -> None:
    alert, stuck, slow = "EverynodeRolloutStuck", bad_image(api_version), slow_rollout(api_version)
    fired(tmp_path, alert, notation(stuck), at=f"{MINUTES - 1}m", times=1)
    for minute in (10, 15, 20, MINUTES - 1):
        fired(tmp_path, alert, notation(slow), at=f"{minute}m", times=0)


@needs_prometheus
def test_prometheus_notices_that_no_controller_leads(tmp_path: Path) -> None:
    alert, one, other = "EverynodeControllerDown", named("leader", i="a"), named("leader", i="b")
    cases = {
        # A handover between two replicas; both that stand by; one that is gone; none ever.
        ("1x10 0x20", "0x10 1x20"): 0,
        ("0x30", "0x30"): 1,
        ("1x10 stale", "0x30"): 1,
        ("stale", "stale"): 1,
    }
    for (first, second), times in cases.items():
        fired(tmp_path, alert, {one: first, other: second}, at="20m", times=times)


@needs_prometheus
def test_prometheus_tells_a_lasting_conflict_from_a_short_one(tmp_path: Path) -> None:
    series = named("daemonset_contested", "apps/v1")
    alert = "EverynodeStatusContested"
    fired(tmp_path, alert, {series: "0x10 1 1 0x40"}, at="20m", times=0)
    fired(tmp_path, alert, {series: "0x10 1 0 1 1 0 1x4 0 1x8 0 1x16"}, at="35m", times=1)


@needs_prometheus
@pytest.mark.parametrize("resource", ["nodes", "pods", "controllerrevisions"])
def test_prometheus_notices_a_permission_that_was_taken_away(tmp_path: Path, resource: str) -> None:
    """The process leads on, so that no other alert tells."""
    scrapes, alert = without_permission(resource), "EverynodeCacheStale"
    assert {*scrapes.of("everynode_leader{}")} == {1}
    fired(tmp_path, alert, notation(scrapes), at=f"{MINUTES - 1}m", times=1)
    for healthy in (bad_image("apps/v1"), slow_rollout("apps/v1")):
        fired(tmp_path, alert, notation(healthy), at=f"{MINUTES - 1}m", times=0)
