from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families

from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.controller.metrics import Metrics
from everynode.kube import verbs
from everynode.kube.errors import describe
from everynode.kube.resources import NODES, PODS, Resource
from tests.support.scripted_server import ManualClock


class Watch:
    def __init__(self, resource: Resource, heard_at: float, *, synced: bool) -> None:
        self.resource = resource
        self.heard_at = heard_at
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


def test_every_metric_says_what_it_is() -> None:
    text = Metrics(ManualClock()).exposition().decode()
    names = re.findall(r"^# TYPE (everynode\S+)", text, re.M)
    assert len(names) > 10
    assert names == re.findall(r"^# HELP (everynode\S+) \S", text, re.M)
