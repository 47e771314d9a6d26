"""S11: the conditions of a status, worked out a second time from what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from everynode.api.daemonset import DaemonSet, DaemonSetStatus, Flavour
from everynode.api.objects import Condition
from everynode.api.times import seconds
from everynode.sim.checks.oracle import PROGRESS_SECONDS, Oracle, is_watched, node_fit
from everynode.sim.checks.status_recount import first_of

# What deployment tools read; at most one of them is True.
FOR_TOOLS: Final = ("Ready", "Reconciling", "Stalled")
_ROUNDING: Final = 1.0  # times in conditions are whole seconds


def condition_faults(ds: DaemonSet, status: DaemonSetStatus, now: float) -> Iterator[str]:
    """Yield what is wrong with the conditions of a status that was decided at this time.

    `ds` is the DaemonSet before the write. Counts are compared with those of the same status.
    """
    conditions = {each.type: each for each in status.conditions}
    if "Complete" not in conditions:
        return
    done = status.updated == status.available == status.desired
    if is_true_condition(conditions, "Complete") != done:
        counts = f"{status.updated} updated, {status.available} available of {status.desired}"
        yield f"Complete is {conditions['Complete'].status} with {counts}"
    if ds.flavour is Flavour.NATIVE:
        before = {each.type for each in ds.status.conditions}
        if any(name in conditions and name not in before for name in FOR_TOOLS):
            yield "a native DaemonSet was given a condition that tools read"
        return
    true = [name for name in FOR_TOOLS if is_true_condition(conditions, name)]
    if len(true) > 1:
        yield f"{' and '.join(true)} are True together"
    if is_true_condition(conditions, "Complete") and not is_true_condition(conditions, "Ready"):
        yield "it is complete and not Ready"
    if is_true_condition(conditions, "Stalled") and not is_true_condition(conditions, "Faulty"):
        yield from _early_stall(ds, conditions, now)


def is_true_condition(conditions: Mapping[str, Condition], name: str) -> bool:
    """Whether this condition is True."""
    return name in conditions and conditions[name].status == "True"


def _early_stall(ds: DaemonSet, conditions: Mapping[str, Condition], now: float) -> Iterator[str]:
    """A stall is reported after minReadySeconds and five minutes in which nothing moved."""
    times = [
        conditions[name].last_transition_time
        for name in ("Ready", "Reconciling")
        if name in conditions
    ]
    since = max(0.0 if each is None else seconds(each) for each in times)
    waited = now - since
    if waited + _ROUNDING < ds.min_ready_seconds + PROGRESS_SECONDS:
        yield f"Stalled is set {waited:.0f} s after the last movement"


def not_as_declared(oracle: Oracle) -> Iterable[str]:
    """The nodes that are not as the spec declares, without those whose silence excuses them."""
    left = [name for name in sorted(oracle.desired_nodes) if not _as_declared(oracle, name)]
    held = [name for name in oracle.desired_nodes if not _is_in_scope(oracle, name)]
    excused = [name for name in left if _is_excused(oracle, name, canary=bool(held))]
    silent = [name for name in left if _is_excused(oracle, name, canary=False)]
    few = len(silent) <= max(oracle.limit, len(oracle.desired_nodes) // 10)
    if few and len(left) < len(oracle.desired_nodes):
        return [name for name in left if name not in excused]
    return left


def _is_in_scope(oracle: Oracle, name: str) -> bool:
    return oracle.unrestricted or name in oracle.scope


def _as_declared(oracle: Oracle, name: str) -> bool:
    pods = [pod for pod in oracle.pods_on(name) if is_watched(pod)]
    first = first_of(pods)
    if first is not None and oracle.at_target(first) and oracle.is_available(first):
        return True
    if oracle.rolling and _is_in_scope(oracle, name):
        return False
    wanted = node_fit(oracle.node_template(name)).should_run(oracle.cluster.nodes[name])
    return not wanted or oracle.may_hold_back(name) or any(map(oracle.is_available, pods))


def _is_excused(oracle: Oracle, name: str, *, canary: bool) -> bool:
    """Whether the node is silent, and held or not reached by the target; in a canary only held."""
    if not oracle.is_silent(name):
        return False
    if not _is_in_scope(oracle, name):
        return True
    return not canary and not any(map(oracle.at_target, oracle.pods_on(name)))
