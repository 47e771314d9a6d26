"""What Prometheus can know of us: the queue, the writes, the watches and every rollout."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.clock import Clock
from everynode.kube.errors import Asked
from everynode.kube.resources import Resource

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_LOOKS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_SET: Final = ("namespace", "daemonset", "kind")
_COUNTS: Final = {
    "desired": "Nodes that should have a pod.",
    "current": "Nodes that should have a pod and have one.",
    "ready": "Nodes whose pod is Ready.",
    "updated": "Nodes whose pod is of the target revision.",
    "available": "Nodes whose pod has been Ready for long enough.",
    "unavailable": "Nodes that should have an available pod and have none.",
    "misscheduled": "Nodes that have a pod and should not.",
}

_read_counts: Final = attrgetter(*_COUNTS)


class WatchState(Protocol):
    """As much of a watch as is measured."""

    resource: Resource
    heard_at: float

    @property
    def synced(self) -> bool:
        """Whether its copy is whole."""
        ...


class RecorderState(Protocol):
    """As much of an event recorder as is measured."""

    written: int
    dropped: int


class Metrics:
    """All metrics of one process, in a registry of their own."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._reconcile = Histogram(
            "everynode_reconcile_seconds",
            "Time taken to look at one DaemonSet and decide.",
            buckets=_LOOKS,
            registry=self.registry,
        )
        self._writes = Counter(
            "everynode_api_writes_total",
            "Writes sent to the API server, by verb, resource and result.",
            ("verb", "resource", "result"),
            registry=self.registry,
        )
        self._pods = Counter(
            "everynode_pod_actions_total",
            "What was done to pods, and why.",
            ("action", "because"),
            registry=self.registry,
        )
        self._restarts = Counter(
            "everynode_watch_restarts_total",
            "Watches that had to be made again, by reason.",
            ("resource", "reason"),
            registry=self.registry,
        )
        self._counts = {
            name: Gauge(f"everynode_daemonset_{name}", text, _SET, registry=self.registry)
            for name, text in _COUNTS.items()
        }
        self._told: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._gauges: dict[tuple[str, ...], list[Gauge]] = {}
        # What is counted for every pod, by its labels: to look them up anew costs several times
        # the counting. There are few of them.
        self._written: dict[tuple[str, str, str], Counter] = {}
        self._acted: dict[tuple[str, str], Counter] = {}
        self._contested = Gauge(
            "everynode_daemonset_contested",
            "1 while another manager writes the DaemonSet's status and we leave it alone.",
            _SET,
            registry=self.registry,
        )
        self._leader = Gauge(
            "everynode_leader", "1 while this process leads.", registry=self.registry
        )
        ProcessCollector(registry=self.registry)

    # --- What is told --------------------------------------------------------------------------

    def looked(self, seconds: float) -> None:
        """A DaemonSet was looked at."""
        self._reconcile.observe(seconds)

    def wrote(self, asked: Asked, result: str) -> None:
        """A write was sent and answered, or not."""
        key = (asked.verb, asked.resource, result)
        counter = self._written.get(key)
        if counter is None:
            counter = self._written[key] = self._writes.labels(*key)
        counter.inc()

    def pod_action(self, action: str, because: str) -> None:
        """Something was done to a pod."""
        counter = self._acted.get((action, because))
        if counter is None:
            counter = self._acted[action, because] = self._pods.labels(action, because)
        counter.inc()

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A watch had to be made again."""
        self._restarts.labels(resource.full_name, reason).inc()

    def rollout(
        self, flavour: Flavour, namespace: str, name: str, *, status: DaemonSetStatus
    ) -> None:
        """A DaemonSet's status is this now."""
        labels = (namespace, name, flavour.value)
        told, counts = self._told.get(labels, ()), _read_counts(status)
        if told == counts:
            return
        gauges = self._gauges.get(labels)
        if gauges is None:
            gauges = [gauge.labels(*labels) for gauge in self._counts.values()]
            self._gauges[labels] = gauges
        for gauge, before, count in zip_longest(gauges, told, counts):
            if count != before:
                gauge.set(count)
        self._told[labels] = counts

    def contested(self, flavour: Flavour, namespace: str, name: str, *, now: bool) -> None:
        """Whether another manager writes a DaemonSet's status."""
        self._contested.labels(namespace, name, flavour.value).set(now)

    def forget(self, flavour: Flavour, namespace: str, name: str) -> None:
        """A DaemonSet is gone."""
        self._told.pop((namespace, name, flavour.value), None)
        self._gauges.pop((namespace, name, flavour.value), None)
        for gauge in (*self._counts.values(), self._contested):
            with contextlib.suppress(KeyError):  # never told of
                gauge.remove(namespace, name, flavour.value)

    # --- What is asked when somebody looks -----------------------------------------------------

    def follow_leader(self, leading: Callable[[], bool]) -> None:
        """Show whether we lead."""
        self._leader.set_function(lambda: float(leading()))

    def follow_queue(self, depth: Callable[[], int]) -> None:
        """Show how many DaemonSets wait for a look."""
        gauge = Gauge(
            "everynode_queue_depth", "DaemonSets that wait for a look.", registry=self.registry
        )
        gauge.set_function(depth)

    def follow_watches(self, watches: Sequence[WatchState]) -> None:
        """Show how old the caches may be."""
        self.registry.register(_Watches(watches, self._clock))

    def follow_events(self, recorder: RecorderState) -> None:
        """Show how many events were recorded."""
        self.registry.register(_Events(recorder))

    def exposition(self) -> bytes:
        """Return everything as Prometheus reads it."""
        return generate_latest(self.registry)


class _Watches(Collector):
    def __init__(self, watches: Sequence[WatchState], clock: Clock) -> None:
        self._watches = watches
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """Ask every watch; where two watch the same kind, the older counts."""
        age = GaugeMetricFamily(
            "everynode_cache_age_seconds",
            "Seconds since the server last said anything about a kind.",
            labels=["resource"],
        )
        synced = GaugeMetricFamily(
            "everynode_cache_synced", "1 when the copy of a kind is whole.", labels=["resource"]
        )
        ages: dict[str, float] = {}
        whole: dict[str, bool] = {}
        for watch in self._watches:
            name = watch.resource.full_name
            ages[name] = max(ages.get(name, 0.0), self._clock.monotonic() - watch.heard_at)
            whole[name] = whole.get(name, True) and watch.synced
        for name in sorted(ages):
            age.add_metric([name], ages[name])
            synced.add_metric([name], whole[name])
        return [age, synced]


class _Events(Collector):
    def __init__(self, recorder: RecorderState) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        """Ask the recorder."""
        events = CounterMetricFamily(
            "everynode_events", "Kubernetes Events written and dropped.", labels=["result"]
        )
        events.add_metric(["written"], self._recorder.written)
        events.add_metric(["dropped"], self._recorder.dropped)
        yield events
