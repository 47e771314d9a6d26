"""Metrics: the queue, the writes, the watches and every rollout, for Prometheus."""

from __future__ import annotations

import math
import platform
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

import everynode
from everynode.api.daemonset import DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.api.times import seconds
from everynode.clock import Clock
from everynode.controller.state import DaemonSetState
from everynode.decide.fleet.conditions import (
    COMPLETE,
    CONDITION_TYPES,
    FleetSummary,
    stall_check,
)
from everynode.kube.errors import RequestInfo
from everynode.kube.resources import Resource

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_BUCKETS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_UPDATE_BUCKETS: Final = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
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
# Kubelets choose the words for containers that do not run: rare ones are counted together.
_NAMED_REASONS: Final = 20
_OTHER_REASONS: Final = "Other"

_Labels = tuple[str, ...]
_Family = TypeVar("_Family", CounterMetricFamily, GaugeMetricFamily)


class MeasuredWatch(Protocol):
    """The fields of a watch that metrics are made from."""

    resource: Resource
    missing: bool
    received_at: float

    @property
    def synced(self) -> bool:
        """Whether its cache has been filled completely."""
        ...


class RecorderState(Protocol):
    """The counts of an event recorder that metrics are made from."""

    written: int
    dropped: int


class _Histogram:
    """How often something took how long."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)  # by the first bucket that holds them
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return upper bounds, each with how many are not above it."""
        bounds = [*map(str, self._bounds), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


@dataclass(slots=True)
class _Progress:
    """How far the rollout of one target has come, and since when."""

    target: str
    done: int  # the most nodes that were updated and available
    missing: int  # the fewest that were not
    complete: bool
    at: float


class Metrics:
    """All metrics of one process, in a registry of their own.

    Counts are plain numbers, which are cheap to increment. They become metrics when Prometheus
    scrapes them.
    """

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._reconciles = _Histogram(_BUCKETS)
        self._writes: Counter[_Labels] = Counter()
        self._pods: Counter[_Labels] = Counter()
        self._restarts: Counter[_Labels] = Counter()
        self._left_out: Counter[_Labels] = Counter()
        self._skews: Counter[_Labels] = Counter()
        self._rollouts: dict[_Labels, DaemonSetStatus] = {}
        self._status_conflicts: dict[_Labels, bool] = {}
        self._progress: dict[_Labels, _Progress] = {}
        # By DaemonSet and node: the target that the node was taken for, and when.
        self._taken: defaultdict[_Labels, dict[str, tuple[str, float]]] = defaultdict(dict)
        self._just_taken: defaultdict[_Labels, list[str]] = defaultdict(list)
        self._updates: dict[_Labels, _Histogram] = {}
        self._leading: Callable[[], bool] = lambda: True
        self._daemonsets: Callable[[], Iterable[DaemonSetState]] = tuple
        self.registry.register(_OnDemand(self._count))
        ProcessCollector(registry=self.registry)

    # --- What is counted -----------------------------------------------------------------------

    def reconciled(self, seconds: float) -> None:
        """Count a reconcile and its duration."""
        self._reconciles.observe(seconds)

    def wrote(self, request: RequestInfo, result: str) -> None:
        """Count a write that was sent, by its result."""
        self._writes[request.verb, request.resource, result] += 1

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

    def progress(
        self, flavour: Flavour, namespace: str, name: str, *, target: str, done: int, desired: int
    ) -> None:
        """Note when a rollout began, or came further than ever before.

        A node that goes down and comes back does not count; nodes may also join and leave.
        """
        labels, now, missing = (namespace, name, flavour.value), self._clock.now(), desired - done
        known = self._progress.get(labels)
        complete = missing <= 0
        if known is None or known.target != target or (known.complete and not complete):
            self._progress[labels] = _Progress(target, done, missing, complete, now)
        elif done > known.done or missing < known.missing:
            known.done, known.missing = max(done, known.done), min(missing, known.missing)
            known.complete, known.at = complete, now

    def node_taken(
        self, flavour: Flavour, namespace: str, name: str, *, node: str, target: str
    ) -> None:
        """Note when the update of a node began; its further writes for this target belong to it."""
        taken = self._taken[namespace, name, flavour.value]
        if node not in taken or taken[node][0] != target:
            taken[node] = target, self._clock.monotonic()
            self._just_taken[namespace, name, flavour.value].append(node)

    def nodes_updated(
        self,
        flavour: Flavour,
        namespace: str,
        name: str,
        finished: Iterable[str],
        *,
        is_done: Callable[[str], bool | None],  # None: there is no such node
    ) -> None:
        """Count how long the updates took of the nodes that are done now.

        `finished` are the nodes that became done or are gone since the last call. Only these are
        looked at, and those that were taken since: most nodes of a large batch are neither.
        """
        labels = (namespace, name, flavour.value)
        updates = self._updates.setdefault(labels, _Histogram(_UPDATE_BUCKETS))
        taken, now = self._taken[labels], self._clock.monotonic()
        for node in (*self._just_taken.pop(labels, ()), *finished):
            done = is_done(node) if node in taken else False
            if done is not False:
                _, began = taken.pop(node)
                if done:
                    updates.observe(now - began)

    def status_conflict(self, flavour: Flavour, namespace: str, name: str, *, now: bool) -> None:
        """Store whether another manager writes a DaemonSet's status."""
        self._status_conflicts[namespace, name, flavour.value] = now

    def forget(self, flavour: Flavour, namespace: str, name: str) -> None:
        """Remove the metrics of a deleted DaemonSet."""
        labels = (namespace, name, flavour.value)
        self._rollouts.pop(labels, None)
        self._progress.pop(labels, None)
        self._taken.pop(labels, None)
        self._just_taken.pop(labels, None)
        self._updates.pop(labels, None)
        self._status_conflicts.pop(labels, None)

    def lead_lost(self) -> None:
        """Forget what the next leader goes on with: status conflicts and updates under way."""
        self._status_conflicts.clear()
        self._taken.clear()
        self._just_taken.clear()

    @property
    def contested(self) -> list[str]:
        """The DaemonSets whose status another manager writes, as `namespace/name`."""
        return sorted(f"{each[0]}/{each[1]}" for each, now in self._status_conflicts.items() if now)

    # --- What is read at each scrape ----------------------------------------------------------

    def follow_leader(self, leading: Callable[[], bool]) -> None:
        """Export whether we lead."""
        self._leading = leading

    def follow_daemonsets(self, states: Callable[[], Iterable[DaemonSetState]]) -> None:
        """Export how the nodes of these DaemonSets stand."""
        self._daemonsets = states

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
        text = "1; the labels say which version runs, and on which Python."
        version: dict[_Labels, float] = {(everynode.__version__, platform.python_version()): 1}
        yield _gauges("build_info", text, ("version", "python"), version)
        yield HistogramMetricFamily(
            "everynode_reconcile_seconds",
            "Time taken to reconcile one DaemonSet.",
            buckets=self._reconciles.buckets(),
            sum_value=self._reconciles.sum,
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
        yield _gauge("leader", "1 while this process leads.", self._leading())
        if self._leading():  # what an earlier leader knows is out of date
            yield from self._count_rollouts()
            yield from _count_nodes(self._daemonsets())

    def _count_rollouts(self) -> Iterator[Metric]:
        for name, text in _COUNTS.items():
            counts = {labels: getattr(each, name) for labels, each in self._rollouts.items()}
            yield _gauges(f"daemonset_{name}", text, _DAEMONSET_LABELS, counts)
        text = "1 while another manager writes the DaemonSet's status and we leave it alone."
        contested = dict.fromkeys(self._rollouts, False) | self._status_conflicts
        yield _gauges("daemonset_contested", text, _DAEMONSET_LABELS, contested)
        conditions: dict[_Labels, float] = {}
        starts: dict[_Labels, float] = {}
        for labels, status in self._rollouts.items():
            for each in status.conditions:
                if each.type in CONDITION_TYPES:
                    conditions[*labels, each.type] = each.status == "True"
            start = _incomplete_since(status.conditions)
            if start is not None:
                starts[labels] = start
        text = "1 while a condition of the status is True."
        yield _gauges("daemonset_condition", text, (*_DAEMONSET_LABELS, "condition"), conditions)
        text = "Since when the rollout is not complete, in seconds since 1970."
        yield _gauges("daemonset_rollout_start_timestamp_seconds", text, _DAEMONSET_LABELS, starts)
        text = "When the rollout last came further or began, in seconds since 1970."
        times = {labels: known.at for labels, known in self._progress.items()}
        yield _gauges("daemonset_last_progress_timestamp_seconds", text, _DAEMONSET_LABELS, times)
        updates = HistogramMetricFamily(
            "everynode_daemonset_node_update_seconds",
            "Time from when a node is taken for an update until its new pod is available.",
            labels=_DAEMONSET_LABELS,
        )
        for labels, seen in self._updates.items():
            updates.add_metric(labels, buckets=seen.buckets(), sum_value=seen.sum)
        yield updates


class _OnDemand(Collector):
    """Metrics that are computed at each scrape."""

    def __init__(self, ask: Callable[[], Iterable[Metric]]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[Metric]:
        """Compute the metrics."""
        return self._ask()


def _incomplete_since(conditions: Iterable[Condition]) -> float | None:
    for each in conditions:
        if each.type == COMPLETE and each.status != "True":
            return seconds(each.last_transition_time)
    return None


def _count_nodes(states: Iterable[DaemonSetState]) -> Iterator[Metric]:
    """Count from sums that are kept anyway: the number of nodes does not matter."""
    nodes: dict[_Labels, float] = {}
    waiting: dict[_Labels, float] = {}
    blocked: dict[_Labels, float] = {}
    for state in states:
        if state.ledger is None:
            continue
        summary = state.ledger.summary()
        labels = (state.ds.namespace, state.ds.name, state.ds.flavour.value)
        nodes[*labels, "updated"] = summary.done
        nodes[*labels, "under_way"] = summary.under_way
        nodes[*labels, "held"] = summary.held
        nodes[*labels, "to_come"] = summary.not_started
        for reason, count in _waiting_by_reason(summary).items():
            waiting[*labels, reason] = count
        check = stall_check(summary, "")
        blocked[labels] = check is not None and check.after < math.inf
    text = "Nodes that should have a pod, by state; each is in one."
    yield _gauges("daemonset_nodes", text, (*_DAEMONSET_LABELS, "state"), nodes)
    text = "Nodes that wait for something outside of the controller, by reason."
    yield _gauges("daemonset_waiting_nodes", text, (*_DAEMONSET_LABELS, "reason"), waiting)
    text = "1 while the DaemonSet is not as declared, nothing moves, and its spec asks for no wait."
    yield _gauges("daemonset_blocked", text, _DAEMONSET_LABELS, blocked)


def _waiting_by_reason(summary: FleetSummary) -> Counter[str]:
    counts = Counter({reason: len(names) for reason, names in summary.waiting.items()})
    order = sorted(counts, key=lambda reason: (-counts[reason], reason))
    for reason in order[_NAMED_REASONS:]:
        counts[_OTHER_REASONS] += counts.pop(reason)
    return counts


def _counter(
    name: str, text: str, labels: Sequence[str], counts: Mapping[_Labels, int]
) -> CounterMetricFamily:
    return _fill(CounterMetricFamily(f"everynode_{name}", text, labels=labels), counts)


def _gauges(
    name: str, text: str, labels: Sequence[str], values: Mapping[_Labels, float]
) -> GaugeMetricFamily:
    return _fill(GaugeMetricFamily(f"everynode_{name}", text, labels=labels), values)


def _fill(family: _Family, values: Mapping[_Labels, float]) -> _Family:
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"everynode_{name}", text, value=value)


def _ask_watches(watches: Sequence[MeasuredWatch], clock: Clock) -> list[Metric]:
    """Return the age of each cache; of two watches of one kind, the older counts.

    A kind that is not installed has no cache that could be out of date.
    """
    ages: dict[_Labels, float] = {}
    whole: dict[_Labels, bool] = {}
    installed = [watch for watch in watches if not watch.missing]
    for watch in sorted(installed, key=lambda each: each.resource.full_name):
        name = (watch.resource.full_name,)
        ages[name] = max(ages.get(name, 0.0), clock.monotonic() - watch.received_at)
        whole[name] = whole.get(name, True) and watch.synced
    text = "Seconds since the server last sent anything about a kind."
    age = _gauges("cache_age_seconds", text, ("resource",), ages)
    text = "1 when the copy of a kind is whole."
    return [age, _gauges("cache_synced", text, ("resource",), whole)]
