from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import product

import pytest
from prometheus_client.parser import text_string_to_metric_families

import everynode
from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.controller.metrics import Metrics
from everynode.controller.state import DaemonSetState
from everynode.decide.ledger import Ledger
from everynode.decide.view import NodeView
from everynode.kube import verbs
from everynode.kube.errors import describe
from everynode.kube.resources import ADVANCED, NODES, PODS, Resource
from tests.support.fleet import NEW, NOW, make, node, pod
from tests.support.scripted_server import ManualClock

AGENT = "daemonset=agent,kind=apps/v1,namespace=n"


class Watch:
    def __init__(
        self, resource: Resource, received_at: float, *, synced: bool, missing: bool = False
    ) -> None:
        self.resource = resource
        self.missing = missing
        self.received_at = received_at
        self.synced = synced


class Counts:
    written = 7
    dropped = 2


def shown(metrics: Metrics) -> dict[str, float]:
    """All samples that are ours, as `name{labels}` and value."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            if sample.name.startswith("everynode") and not sample.name.endswith("_created"):
                labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_writes_are_counted_by_verb_resource_and_result() -> None:
    metrics = Metrics(ManualClock())
    asked = describe(verbs.delete(PODS, "p", namespace="n"))
    metrics.wrote(asked, "ok")
    metrics.wrote(asked, "ok")
    metrics.wrote(asked, "Conflict")
    samples = shown(metrics)
    assert samples["everynode_api_writes_total{resource=pods,result=ok,verb=delete}"] == 2
    assert samples["everynode_api_writes_total{resource=pods,result=Conflict,verb=delete}"] == 1


def test_rollouts_are_shown_until_their_daemonset_is_gone() -> None:
    metrics = Metrics(ManualClock())
    status = DaemonSetStatus(desired=20, updated=2, available=19, unavailable=1)
    metrics.rollout(Flavour.ADVANCED, "n", "agent", status=status)
    metrics.rollout(Flavour.NATIVE, "n", "agent", status=DaemonSetStatus(desired=3))
    metrics.status_conflict(Flavour.ADVANCED, "n", "agent", now=True)
    labels = "{daemonset=agent,kind=apps.kruise.io,namespace=n}"
    samples = shown(metrics)
    assert samples[f"everynode_daemonset_desired{labels}"] == 20
    assert samples[f"everynode_daemonset_updated{labels}"] == 2
    assert samples[f"everynode_daemonset_contested{labels}"] == 1
    metrics.forget(Flavour.ADVANCED, "n", "agent")
    metrics.forget(Flavour.NATIVE, "n", "never seen")
    samples = shown(metrics)
    assert not any("apps.kruise.io" in name for name in samples)
    assert samples["everynode_daemonset_desired{daemonset=agent,kind=apps/v1,namespace=n}"] == 3


def test_conditions_are_shown_as_numbers_and_tell_since_when_a_rollout_goes_on() -> None:
    metrics = Metrics(ManualClock())
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    conditions = (
        Condition("Complete", "False", last_transition_time=moment),
        Condition("Progressing", "True", last_transition_time=moment),
        Condition("OfAnother", "True", last_transition_time=moment),
    )
    metrics.rollout(
        Flavour.NATIVE, "n", "agent", status=DaemonSetStatus(desired=3, conditions=conditions)
    )
    samples = shown(metrics)
    found = {name: value for name, value in samples.items() if "daemonset_condition" in name}
    assert found == {
        f"everynode_daemonset_condition{{condition=Complete,{AGENT}}}": 0,
        f"everynode_daemonset_condition{{condition=Progressing,{AGENT}}}": 1,
    }
    started = f"everynode_daemonset_rollout_start_timestamp_seconds{{{AGENT}}}"
    assert samples[started] == moment.timestamp()
    assert samples[f"everynode_daemonset_contested{{{AGENT}}}"] == 0


@pytest.mark.parametrize(
    ("steps", "moved"),
    [
        ([("v2", 3, 9), ("v2", 4, 9)], [True, True]),
        ([("v2", 3, 9), ("v2", 3, 9)], [True, False]),
        # A node goes down and comes back.
        ([("v2", 3, 9), ("v2", 2, 9), ("v2", 3, 9)], [True, False, False]),
        # Nodes are removed, updated ones first.
        ([("v2", 3, 9), ("v2", 1, 7), ("v2", 2, 7)], [True, False, True]),
        # Nodes are added.
        ([("v2", 3, 9), ("v2", 3, 12), ("v2", 4, 12)], [True, False, True]),
        # Another target, which has nodes that another one had not.
        ([("v2", 3, 9), ("v3", 1, 9)], [True, True]),
        # Complete, and then a node reboots.
        ([("v2", 8, 9), ("v2", 9, 9), ("v2", 8, 9), ("v2", 9, 9)], [True, True, True, True]),
    ],
)
async def test_progress_is_to_come_further_than_before(
    steps: list[tuple[str, int, int]], moved: list[bool]
) -> None:
    clock = ManualClock()
    metrics = Metrics(clock)
    found = []
    for target, done, desired in steps:
        await clock.advance(60)
        metrics.progress(Flavour.NATIVE, "n", "agent", target=target, done=done, desired=desired)
        at = shown(metrics)[f"everynode_daemonset_last_progress_timestamp_seconds{{{AGENT}}}"]
        found.append(at == clock.now())
    assert found == moved
    metrics.forget(Flavour.NATIVE, "n", "agent")
    assert not any("agent" in name for name in shown(metrics))


async def test_only_nodes_that_changed_are_looked_at() -> None:
    metrics = Metrics(ManualClock())
    name = (Flavour.NATIVE, "n", "agent")
    for index in range(500):
        metrics.node_taken(*name, node=f"n{index}", target="v2")
    asked: list[str] = []

    def is_done(node: str) -> bool:
        asked.append(node)
        return node == "n7"

    metrics.nodes_updated(*name, (), is_done=lambda _: False)
    metrics.nodes_updated(*name, ("n7", "another"), is_done=is_done)
    assert asked == ["n7"]


async def test_the_time_of_an_update_is_from_taking_the_node_to_its_available_pod() -> None:
    clock = ManualClock()
    metrics = Metrics(clock)
    name = (Flavour.NATIVE, "n", "agent")
    metrics.rollout(*name, status=DaemonSetStatus(desired=4))
    metrics.nodes_updated(*name, (), is_done=lambda _: False)
    assert shown(metrics)[f"everynode_daemonset_node_update_seconds_count{{{AGENT}}}"] == 0
    for each in ("slow", "quick", "gone", "taken again"):
        metrics.node_taken(*name, node=each, target="v2")
    await clock.advance(4.0)
    metrics.node_taken(*name, node="quick", target="v2")  # the next step of its update in place
    metrics.node_taken(*name, node="taken again", target="v3")
    done = {"slow": False, "quick": True, "taken again": False}
    metrics.nodes_updated(*name, ("quick", "gone"), is_done=done.get)
    await clock.advance(36.0)
    metrics.nodes_updated(*name, ("slow", "taken again", "never taken"), is_done=lambda _: True)
    metrics.nodes_updated(*name, ("slow",), is_done=lambda _: True)
    samples = shown(metrics)
    base = "everynode_daemonset_node_update_seconds"
    assert samples[f"{base}_count{{{AGENT}}}"] == 3
    assert samples[f"{base}_sum{{{AGENT}}}"] == 4 + 40 + 36
    for bound, count in (("2.5", 0), ("5.0", 1), ("30.0", 1), ("60.0", 3), ("+Inf", 3)):
        labels = AGENT.replace(",namespace", f",le={bound},namespace")
        assert samples[f"{base}_bucket{{{labels}}}"] == count
    metrics.forget(*name)
    assert not [each for each in shown(metrics) if each.startswith(base)]


def test_reasons_that_kubelets_make_up_do_not_become_endless_metrics() -> None:
    plan = make()
    state = DaemonSetState(plan.ds, {})
    words = ["".join(pair) for pair in product("ABCDEF", "abcde")]
    broken = [pod(NEW, on=word, ready=False, waiting=word) for word in words]
    views = [
        NodeView(name=each.spec.node_name, node=node(each.spec.node_name), pods=(each,))
        for each in broken
    ]
    state.ledger = Ledger(plan, views)
    state.ledger.assess(NOW)
    metrics = Metrics(ManualClock())
    metrics.follow_daemonsets(lambda: [state])
    found = {name: value for name, value in shown(metrics).items() if "waiting_nodes" in name}
    assert len(found) == 21
    assert sum(found.values()) == len(words)
    assert not any("waiting_nodes" in name for name in shown(Metrics(ManualClock())))


def test_only_the_leader_shows_rollouts() -> None:
    metrics = Metrics(ManualClock())
    leading = [True]
    metrics.follow_leader(lambda: leading[0])
    metrics.rollout(Flavour.NATIVE, "n", "agent", status=DaemonSetStatus(desired=3))
    metrics.status_conflict(Flavour.NATIVE, "n", "agent", now=True)
    assert shown(metrics)[f"everynode_daemonset_contested{{{AGENT}}}"] == 1
    leading[0] = False
    metrics.lead_lost()
    assert not any("agent" in name for name in shown(metrics))
    leading[0] = True
    assert shown(metrics)[f"everynode_daemonset_contested{{{AGENT}}}"] == 0


def test_the_age_of_a_cache_is_that_of_its_quietest_watch() -> None:
    clock = ManualClock()
    metrics = Metrics(clock)
    now = clock.monotonic()
    metrics.follow_watches(
        [
            Watch(PODS, now - 5, synced=True),
            Watch(PODS, now - 50, synced=False),
            Watch(NODES, now - 1, synced=True),
        ]
    )
    samples = shown(metrics)
    assert samples["everynode_cache_age_seconds{resource=pods}"] == 50
    assert samples["everynode_cache_age_seconds{resource=nodes}"] == 1
    assert samples["everynode_cache_synced{resource=pods}"] == 0
    assert samples["everynode_cache_synced{resource=nodes}"] == 1


def test_a_kind_that_is_not_installed_has_no_cache_that_grows_old() -> None:
    metrics = Metrics(ManualClock())
    metrics.follow_watches([Watch(ADVANCED, -9999.0, synced=False, missing=True)])
    assert not [name for name in shown(metrics) if name.startswith("everynode_cache")]


def test_queue_leader_watches_and_events_are_read_when_metrics_are_scraped() -> None:
    metrics = Metrics(ManualClock())
    waiting: list[str] = []
    metrics.follow_queue(lambda: len(waiting))
    metrics.follow_leader(lambda: bool(waiting))
    metrics.follow_events(Counts())
    assert shown(metrics)["everynode_leader"] == 0
    waiting.append("a")
    metrics.watch_restarted(PODS, "gone")
    metrics.reconciled(0.003)
    metrics.pod_action("delete", "Update")
    samples = shown(metrics)
    assert (samples["everynode_queue_depth"], samples["everynode_leader"]) == (1, 1)
    assert samples["everynode_watch_restarts_total{reason=gone,resource=pods}"] == 1
    assert samples["everynode_reconcile_seconds_count"] == 1
    assert samples["everynode_pod_actions_total{action=delete,because=Update}"] == 1
    assert samples["everynode_events_total{result=dropped}"] == 2


def test_the_version_that_runs_is_shown() -> None:
    [name] = [name for name in shown(Metrics(ManualClock())) if "build_info" in name]
    assert f"version={everynode.__version__}" in name


def test_every_metric_says_what_it_is() -> None:
    text = Metrics(ManualClock()).exposition().decode()
    names = re.findall(r"^# TYPE (everynode\S+)", text, re.M)
    assert len(names) > 10
    assert names == re.findall(r"^# HELP (everynode\S+) \S", text, re.M)
