"""Metrics: the queue, the writes, the watches and every rollout, for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, Protocol, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.clock import Clock
from everynode.kube.errors import RequestInfo
from everynode.kube.resources import Resource

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_BUCKETS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_DAEMONSET_LABELS: Final = ("namespace", "daemonset", "kind")
_COUNTS: Final = {
    "desired": "Nodes that should have a pod.",
    "current": "Nodes that should have a pod and have one.",
    "ready": "Nodes whose pod is Ready.",
    "updated": "Nodes whose pod is of the target revision.",
    "available": "Nodes whose pod has been Ready for long enough.",
    "unavailable": "Nodes that should have an available pod and have none.",
    "misscheduled": "Nodes that have a pod and should not.",
}

_BOUNDS: Final = [*(str(bound) for bound in _BUCKETS), "+Inf"]
_Labels = tuple[str, ...]
_Family = TypeVar("_Family", CounterMetricFamily, GaugeMetricFamily)


class MeasuredWatch(Protocol):
    """The fields of a watch that metrics are made from."""

    resource: Resource
    heard_at: float

    @property
    def synced(self) -> bool:
        """Whether its cache has been filled completely."""
        ...


class RecorderState(Protocol):
    """The counts of an event recorder that metrics are made from."""

    written: int
    dropped: int


class Metrics:
    """All metrics of one process, in a registry of their own.

    Counts are plain numbers, which are cheap to increment. They become metrics when Prometheus
    scrapes them.
    """

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._reconciles = [0] * (len(_BUCKETS) + 1)  # by the first bucket that holds them
        self._reconcile_seconds = 0.0
        self._writes: Counter[_Labels] = Counter()
        self._pods: Counter[_Labels] = Counter()
        self._restarts: Counter[_Labels] = Counter()
        self._left_out: Counter[_Labels] = Counter()
        self._skews: Counter[_Labels] = Counter()
        self._rollouts: dict[_Labels, DaemonSetStatus] = {}
        self._status_conflicts: dict[_Labels, bool] = {}
        self._leading: Callable[[], bool] = lambda: False
        self.registry.register(_OnDemand(self._count))
        ProcessCollector(registry=self.registry)

    # --- What is counted -----------------------------------------------------------------------

    def reconciled(self, seconds: float) -> None:
        """Count a reconcile and its duration."""
        self._reconciles[bisect_left(_BUCKETS, seconds)] += 1
        self._reconcile_seconds += seconds

    def wrote(self, asked: RequestInfo, result: str) -> None:
        """Count a write that was sent, by its result."""
        self._writes[asked.verb, asked.resource, result] += 1

    def pod_action(self, action: str, cause: str) -> None:
        """Count an action on a pod, by its cause."""
        self._pods[action, cause] += 1

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """Count a restart of a watch, by its reason."""
        self._restarts[resource.full_name, reason] += 1

    def left_out(self, resource: Resource) -> None:
        """Count an object that cannot be decoded."""
        self._left_out[(resource.full_name,)] += 1

    def times_ahead(self, nodes: int) -> None:
        """Count nodes whose pods have times in the future."""
        self._skews["node",] += nodes

    def clock_set_back(self) -> None:
        """Count that our own clock was set back."""
        self._skews["own",] += 1

    def rollout(
        self, flavour: Flavour, namespace: str, name: str, *, status: DaemonSetStatus
    ) -> None:
        """Store the current status of a DaemonSet."""
        self._rollouts[namespace, name, flavour.value] = status

    def status_conflict(self, flavour: Flavour, namespace: str, name: str, *, now: bool) -> None:
        """Store whether another manager writes a DaemonSet's status."""
        self._status_conflicts[namespace, name, flavour.value] = now

    def forget(self, flavour: Flavour, namespace: str, name: str) -> None:
        """Remove the metrics of a deleted DaemonSet."""
        self._rollouts.pop((namespace, name, flavour.value), None)
        self._status_conflicts.pop((namespace, name, flavour.value), None)

    # --- What is read at each scrape ----------------------------------------------------------

    def follow_leader(self, leading: Callable[[], bool]) -> None:
        """Export whether we lead."""
        self._leading = leading

    def follow_queue(self, depth: Callable[[], int]) -> None:
        """Export how many DaemonSets wait to be reconciled."""
        text = "DaemonSets that wait to be reconciled."
        self.registry.register(_OnDemand(lambda: [_gauge("queue_depth", text, depth())]))

    def follow_watches(self, watches: Sequence[MeasuredWatch]) -> None:
        """Export how old the caches may be."""
        self.registry.register(_OnDemand(lambda: _ask_watches(watches, self._clock)))

    def follow_events(self, recorder: RecorderState) -> None:
        """Export how many Events were recorded."""
        text = "Kubernetes Events written and dropped."
        self.registry.register(
            _OnDemand(
                lambda: [
                    _counter(
                        "events",
                        text,
                        ("result",),
                        {("written",): recorder.written, ("dropped",): recorder.dropped},
                    )
                ]
            )
        )

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _count(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(
            "everynode_reconcile_seconds",
            "Time taken to reconcile one DaemonSet.",
            buckets=list(zip(_BOUNDS, accumulate(self._reconciles), strict=True)),
            sum_value=self._reconcile_seconds,
        )
        text = "Writes sent to the API server, by verb, resource and result."
        yield _counter("api_writes", text, ("verb", "resource", "result"), self._writes)
        text = "What was done to pods, and why."
        yield _counter("pod_actions", text, ("action", "because"), self._pods)
        text = "Watches that had to be made again, by reason."
        yield _counter("watch_restarts", text, ("resource", "reason"), self._restarts)
        text = "Times that an object of a list or a watch could not be read and was left out."
        yield _counter("objects_left_out", text, ("resource",), self._left_out)
        text = (
            "Times in the future that were met on nodes, and how often our own clock was set back."
        )
        yield _counter("wrong_clocks", text, ("clock",), self._skews)
        for name, text in _COUNTS.items():
            counts = {labels: getattr(each, name) for labels, each in self._rollouts.items()}
            yield _gauges(f"daemonset_{name}", text, _DAEMONSET_LABELS, counts)
        text = "1 while another manager writes the DaemonSet's status and we leave it alone."
        yield _gauges("daemonset_contested", text, _DAEMONSET_LABELS, self._status_conflicts)
        yield _gauge("leader", "1 while this process leads.", self._leading())


class _OnDemand(Collector):
    """Metrics that are computed at each scrape."""

    def __init__(self, ask: Callable[[], Iterable[Metric]]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[Metric]:
        """Compute the metrics."""
        return self._ask()


def _counter(
    name: str, text: str, labels: Sequence[str], counts: Mapping[_Labels, int]
) -> CounterMetricFamily:
    return _filled(CounterMetricFamily(f"everynode_{name}", text, labels=labels), counts)


def _gauges(
    name: str, text: str, labels: Sequence[str], values: Mapping[_Labels, float]
) -> GaugeMetricFamily:
    return _filled(GaugeMetricFamily(f"everynode_{name}", text, labels=labels), values)


def _filled(family: _Family, values: Mapping[_Labels, float]) -> _Family:
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"everynode_{name}", text, value=value)


def _ask_watches(watches: Sequence[MeasuredWatch], clock: Clock) -> list[Metric]:
    """Return the age of each cache; of two watches of one kind, the older counts."""
    ages: dict[_Labels, float] = {}
    whole: dict[_Labels, bool] = {}
    for watch in sorted(watches, key=lambda each: each.resource.full_name):
        name = (watch.resource.full_name,)
        ages[name] = max(ages.get(name, 0.0), clock.monotonic() - watch.heard_at)
        whole[name] = whole.get(name, True) and watch.synced
    text = "Seconds since the server last said anything about a kind."
    age = _gauges("cache_age_seconds", text, ("resource",), ages)
    text = "1 when the copy of a kind is whole."
    return [age, _gauges("cache_synced", text, ("resource",), whole)]
