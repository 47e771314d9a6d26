"""What Prometheus can know of us: the queue, the writes, the watches and every rollout."""

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

_BOUNDS: Final = [*(str(bound) for bound in _LOOKS), "+Inf"]
_Labels = tuple[str, ...]
_Family = TypeVar("_Family", CounterMetricFamily, GaugeMetricFamily)


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
    """All metrics of one process, in a registry of their own.

    What happens is counted in plain numbers, which costs next to nothing; they become metrics when
    somebody asks for them.
    """

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._looks = [0] * (len(_LOOKS) + 1)  # by the first bound that they kept to
        self._look_seconds = 0.0
        self._writes: Counter[_Labels] = Counter()
        self._pods: Counter[_Labels] = Counter()
        self._restarts: Counter[_Labels] = Counter()
        self._rollouts: dict[_Labels, DaemonSetStatus] = {}
        self._contested: dict[_Labels, bool] = {}
        self._leading: Callable[[], bool] = lambda: False
        self.registry.register(_Asked(self._count))
        ProcessCollector(registry=self.registry)

    # --- What is told --------------------------------------------------------------------------

    def looked(self, seconds: float) -> None:
        """A DaemonSet was looked at."""
        self._looks[bisect_left(_LOOKS, seconds)] += 1
        self._look_seconds += seconds

    def wrote(self, asked: Asked, result: str) -> None:
        """A write was sent and answered, or not."""
        self._writes[asked.verb, asked.resource, result] += 1

    def pod_action(self, action: str, because: str) -> None:
        """Something was done to a pod."""
        self._pods[action, because] += 1

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A watch had to be made again."""
        self._restarts[resource.full_name, reason] += 1

    def rollout(
        self, flavour: Flavour, namespace: str, name: str, *, status: DaemonSetStatus
    ) -> None:
        """A DaemonSet's status is this now."""
        self._rollouts[namespace, name, flavour.value] = status

    def contested(self, flavour: Flavour, namespace: str, name: str, *, now: bool) -> None:
        """Whether another manager writes a DaemonSet's status."""
        self._contested[namespace, name, flavour.value] = now

    def forget(self, flavour: Flavour, namespace: str, name: str) -> None:
        """A DaemonSet is gone."""
        self._rollouts.pop((namespace, name, flavour.value), None)
        self._contested.pop((namespace, name, flavour.value), None)

    # --- What is asked when somebody looks -----------------------------------------------------

    def follow_leader(self, leading: Callable[[], bool]) -> None:
        """Show whether we lead."""
        self._leading = leading

    def follow_queue(self, depth: Callable[[], int]) -> None:
        """Show how many DaemonSets wait for a look."""
        text = "DaemonSets that wait for a look."
        self.registry.register(_Asked(lambda: [_gauge("queue_depth", text, depth())]))

    def follow_watches(self, watches: Sequence[WatchState]) -> None:
        """Show how old the caches may be."""
        self.registry.register(_Asked(lambda: _ask_watches(watches, self._clock)))

    def follow_events(self, recorder: RecorderState) -> None:
        """Show how many events were recorded."""
        text = "Kubernetes Events written and dropped."
        self.registry.register(
            _Asked(
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
        """Return everything as Prometheus reads it."""
        return generate_latest(self.registry)

    def _count(self) -> Iterator[Metric]:
        yield HistogramMetricFamily(
            "everynode_reconcile_seconds",
            "Time taken to look at one DaemonSet and decide.",
            buckets=list(zip(_BOUNDS, accumulate(self._looks), strict=True)),
            sum_value=self._look_seconds,
        )
        text = "Writes sent to the API server, by verb, resource and result."
        yield _counter("api_writes", text, ("verb", "resource", "result"), self._writes)
        text = "What was done to pods, and why."
        yield _counter("pod_actions", text, ("action", "because"), self._pods)
        text = "Watches that had to be made again, by reason."
        yield _counter("watch_restarts", text, ("resource", "reason"), self._restarts)
        for name, text in _COUNTS.items():
            counts = {labels: getattr(each, name) for labels, each in self._rollouts.items()}
            yield _gauges(f"daemonset_{name}", text, _SET, counts)
        text = "1 while another manager writes the DaemonSet's status and we leave it alone."
        yield _gauges("daemonset_contested", text, _SET, self._contested)
        yield _gauge("leader", "1 while this process leads.", self._leading())


class _Asked(Collector):
    """Metrics that are worked out when somebody asks for them."""

    def __init__(self, ask: Callable[[], Iterable[Metric]]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[Metric]:
        """Ask."""
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


def _ask_watches(watches: Sequence[WatchState], clock: Clock) -> list[Metric]:
    """Ask every watch; where two watch the same kind, the older counts."""
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
