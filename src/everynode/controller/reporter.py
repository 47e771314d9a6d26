"""Reporter: reports of the controller, as log lines, Events on the DaemonSet and metrics."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import ObjectReference
from everynode.controller.events import Recorder
from everynode.controller.informers import resource_of
from everynode.controller.metrics import Metrics
from everynode.controller.rollout_events import (
    ReportedRollout,
    find_canary,
    report_rollout,
    stored_rollout,
)
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import Cause, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.ledger import Ledger
from everynode.decide.node.reasons import shorten
from everynode.kube.errors import KubeError
from everynode.kube.resources import Resource
from everynode.log import Log

_VERBS: Final = {CreatePod: "create", DeletePod: "delete", PatchPod: "patch"}
_WRITTEN: Final = {"create": "Created pod", "delete": "Deleted pod", "patch": "Changed pod"}
_FAILED: Final = {verb: f"Cannot {verb} pod" for verb in _WRITTEN}
_DEBUG_ONLY: Final = frozenset({Cause.GATE, Cause.RELABEL, Cause.PULLED})
_BEGIN_AN_UPDATE: Final = frozenset({Cause.UPDATE, Cause.SURGE, Cause.IN_PLACE, Cause.HOOK})
_SELECTS_ALL: Final = Notice(
    "Warning",
    "SelectingAll",
    "This daemon set is selecting all pods. A non-empty selector is required.",
)
_NOTABLE_SKEW: Final = 5.0  # seconds; synchronised clocks differ by less
_NAMED_NODES: Final = 3
log: Final = Log("controller")


class Reporter:
    """Interface of all reports of the controller's parts; a subclass overrides those it needs."""

    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        """An action on a pod succeeded."""

    def pod_write_failed(self, state: DaemonSetState, action: PodAction, error: KubeError) -> None:
        """An action on a pod failed; it is tried again."""

    def target_refused(self, state: DaemonSetState, refusal: str) -> None:
        """The API server refuses the target's pods, as a dry run shows; it is tried again."""

    def room_unknown(self, state: DaemonSetState, node: str, error: KubeError) -> None:
        """The room of a node cannot be observed; its pod is taken without that."""

    def images_pulled(self, state: DaemonSetState, done: int, total: int) -> None:
        """`done` of the `total` nodes that will need the images have them."""

    def revision_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        """A write of a revision failed; it is tried again."""

    def adoption_failed(
        self, state: DaemonSetState, error: KubeError, *, pod: str = "", node: str = ""
    ) -> None:
        """Orphans could not be listed, or this one could not be adopted; it is tried again."""

    def notice(self, state: DaemonSetState, notice: Notice) -> None:
        """The decision has an event for the DaemonSet; it repeats it until the cause ends."""

    def selector_is_empty(self, state: DaemonSetState) -> None:
        """The selector is empty and would select every pod of the namespace."""

    def status_decided(self, state: DaemonSetState, status: DaemonSetStatus) -> None:
        """This is the status of the DaemonSet now."""

    def status_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        """A status could not be written; it is tried again."""

    def status_conflict(self, state: DaemonSetState, seconds: float) -> None:
        """Another manager writes the status: we back off for this long; 0 ends it."""

    def reconciled(self, state: DaemonSetState, seconds: float) -> None:
        """A reconcile took this long."""

    def reconcile_failed(self, state: DaemonSetState, error: Exception) -> None:
        """A reconcile raised an unexpected exception; it is tried again."""

    def node_failed(self, state: DaemonSetState, node: str, error: Exception) -> None:
        """Evaluating a node raised an unexpected exception; its pod is left alone."""

    def clock_set_back(self, seconds: float) -> None:
        """The wall clock of this machine was set back."""

    def times_ahead(self, state: DaemonSetState, nodes: Mapping[str, float]) -> None:
        """Pods on these nodes have times in the future, by this many seconds."""

    def daemonset_gone(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""


class ControllerReporter(Reporter):
    """Writes log lines, Events and metrics. It also is the observer of the watches."""

    def __init__(
        self, metrics: Metrics, recorder: Recorder, *, contain_failures: bool = True
    ) -> None:
        self._metrics = metrics
        self._recorder = recorder
        self._contain_failures = contain_failures  # else unexpected exceptions are raised
        # The last message per DaemonSet and reason: a decision repeats a notice until it ends.
        self._reported: dict[str, dict[str, str]] = {}
        self._rollouts: dict[str, ReportedRollout] = {}
        self._decided: dict[str, DaemonSetStatus] = {}

    # --- Pods ------------------------------------------------------------------------------

    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        """An action on a pod succeeded."""
        verb = _VERBS[type(action)]
        self._metrics.pod_action(verb, action.cause)
        if action.cause in _BEGIN_AN_UPDATE and state.ledger is not None:
            ds, target = state.ds, state.ledger.plan.target_hash
            name = (ds.flavour, ds.namespace, ds.name)
            self._metrics.node_taken(*name, node=action.node, target=target)
        debug_only = action.cause in _DEBUG_ONLY
        if log.is_enabled(logging.DEBUG if debug_only else logging.INFO):
            (log.debug if debug_only else log.info)(_WRITTEN[verb], **_fields(state, action))
        for notice in _notices(action):
            self._recorder.record(_reference(state), notice)

    def pod_write_failed(self, state: DaemonSetState, action: PodAction, error: KubeError) -> None:
        """An action on a pod failed."""
        verb = _VERBS[type(action)]
        log.warning(_FAILED[verb], **_fields(state, action), error=shorten(error.message))
        notice = _failure_notice(state, action, error)
        if notice is not None:
            self._recorder.record(_reference(state), notice)

    def target_refused(self, state: DaemonSetState, refusal: str) -> None:
        """The API server refuses the target's pods: no pod is taken for it."""
        message = f"Error creating (dry run, no pod was taken): {refusal}"
        self.notice(state, Notice("Warning", "FailedCreate", message))

    def room_unknown(self, state: DaemonSetState, node: str, error: KubeError) -> None:
        """The room of a node cannot be observed; its pod is taken without that."""
        why = f"Updating without checking that nodes have room for the new pods: {error.message}"
        self.notice(state, Notice("Warning", "RoomUnknown", why))

    def images_pulled(self, state: DaemonSetState, done: int, total: int) -> None:
        """`done` of the `total` nodes that will need the images have them."""
        log.debug("Images fetched ahead", daemonset=state.label, done=done, total=total)

    # --- DaemonSets ------------------------------------------------------------------------

    def notice(self, state: DaemonSetState, notice: Notice) -> None:
        """The decision has an event for the DaemonSet; report it once."""
        reported = self._reported.setdefault(state.key, {})
        if reported.get(notice.reason) == notice.message:
            return
        reported[notice.reason] = notice.message
        write = log.warning if notice.type == "Warning" else log.info
        write(notice.reason, daemonset=state.label, why=notice.message)
        self._recorder.record(_reference(state), notice)

    def status_decided(self, state: DaemonSetState, status: DaemonSetStatus) -> None:
        """This is the status of the DaemonSet now."""
        if self._decided.get(state.key) is status:
            return  # the common case
        self._decided[state.key] = status
        name = (state.ds.flavour, state.ds.namespace, state.ds.name)
        self._metrics.rollout(*name, status=status)
        if state.ledger is not None:
            target, done = state.ledger.plan.target_hash, state.ledger.sums.done
            self._metrics.progress(*name, target=target, done=done, desired=status.desired)
            finished = state.ledger.take_finished()
            self._metrics.nodes_updated(*name, finished, is_done=state.ledger.is_done)
            self._report_rollout(state, state.ledger, status)

    def _report_rollout(
        self, state: DaemonSetState, ledger: Ledger, status: DaemonSetStatus
    ) -> None:
        plan, held = ledger.plan, ledger.sums.held
        known = self._rollouts.get(state.key)
        if known is None:
            known = stored_rollout(state.ds, plan.target_hash, completed=plan.target.completed)
        canary = find_canary(plan.ds.strategy, desired=status.desired, held=held)
        reported, notices = report_rollout(known, plan.target_hash, status, canary)
        self._rollouts[state.key] = reported
        for notice in notices:
            write = log.warning if notice.type == "Warning" else log.info
            write(notice.reason, daemonset=state.label, why=notice.message)
            self._recorder.record(_reference(state), notice)
        if reported.complete and not known.complete:
            self._recorder.hurry(state.ds.uid)

    def revision_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        """A write of a revision failed."""
        log.warning("Cannot write revision", daemonset=state.label, error=shorten(str(error)))
        notice = Notice("Warning", "FailedCreateRevision", error.message)
        self._recorder.record(_reference(state), notice)

    def status_write_failed(self, state: DaemonSetState, error: KubeError) -> None:
        """A status could not be written."""
        log.warning("Cannot write status", daemonset=state.label, error=shorten(str(error)))

    def adoption_failed(
        self, state: DaemonSetState, error: KubeError, *, pod: str = "", node: str = ""
    ) -> None:
        """Orphans could not be listed, or this one could not be adopted; it is tried again."""
        label, why = state.label, shorten(str(error))
        log.warning("Cannot adopt orphans", daemonset=label, pod=pod, node=node, error=why)
        which = f"pod {pod} on node {node or '(none)'}" if pod else "orphans"
        message = f"Error adopting {which}: {error}"
        self._recorder.record(_reference(state), Notice("Warning", "FailedAdoption", message))

    def status_conflict(self, state: DaemonSetState, seconds: float) -> None:
        """Another manager writes the status: we back off for this long; 0 ends it."""
        ds = state.ds
        self._metrics.status_conflict(ds.flavour, ds.namespace, ds.name, now=seconds > 0)
        if seconds > 0:
            message = (
                "Another controller writes the status of this DaemonSet; "
                f"for {seconds:.0f} seconds Everynode only creates pods that stay missing"
            )
            self.notice(state, Notice("Warning", "Contested", message))

    def reconciled(self, state: DaemonSetState, seconds: float) -> None:
        """A reconcile took this long."""
        self._metrics.reconciled(seconds)

    def selector_is_empty(self, state: DaemonSetState) -> None:
        """The selector is empty and would select every pod of the namespace."""
        self.notice(state, _SELECTS_ALL)

    def reconcile_failed(self, state: DaemonSetState, error: Exception) -> None:
        """A reconcile raised an unexpected exception; it is tried again."""
        why, place = self._describe(error)
        log.error("Cannot handle DaemonSet", daemonset=state.label, error=why, at=place)
        message = f"Everynode cannot handle this DaemonSet and leaves it alone for a while: {why}"
        self._recorder.record(_reference(state), Notice("Warning", "InternalError", message))

    def node_failed(self, state: DaemonSetState, node: str, error: Exception) -> None:
        """Evaluating a node raised an unexpected exception; its pod is left alone."""
        why, place = self._describe(error)
        label = state.label
        log.error("Cannot handle node", daemonset=label, node=node, error=why, at=place)
        message = f"Everynode cannot handle node {node} and leaves its pod alone: {why}"
        self._recorder.record(_reference(state), Notice("Warning", "InternalError", message))

    def _describe(self, error: Exception) -> tuple[str, str]:
        """Return the error and its place; raise it instead where failures are not contained."""
        if not self._contain_failures:
            raise error
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return shorten(f"{type(error).__name__}: {error}"), place

    def clock_set_back(self, seconds: float) -> None:
        """The wall clock of this machine was set back."""
        self._metrics.clock_set_back()
        log.warning("The clock of this machine was set back", seconds=round(seconds))

    def times_ahead(self, state: DaemonSetState, nodes: Mapping[str, float]) -> None:
        """Pods on these nodes have times in the future, by this many seconds.

        One line for all nodes: if our own clock is wrong, it may be every node.
        """
        far = {name: ahead for name, ahead in nodes.items() if ahead >= _NOTABLE_SKEW}
        self._metrics.times_ahead(len(far))
        if far:
            first = ", ".join(sorted(far)[:_NAMED_NODES])
            more = ", …" if len(far) > _NAMED_NODES else ""
            log.warning(
                "Times of pods lie in the future and count from now: check the clocks",
                daemonset=state.label,
                nodes=f"{first}{more}",
                seconds=round(max(far.values())),
            )

    def daemonset_gone(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        ds = state.ds
        self._reported.pop(state.key, None)
        self._rollouts.pop(state.key, None)
        self._decided.pop(state.key, None)
        self._metrics.forget(ds.flavour, ds.namespace, ds.name)
        log.info("DaemonSet is gone", daemonset=state.label)

    # --- Watches ---------------------------------------------------------------------------

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """A watch fails in a new way; an empty message means that it works again."""
        name = resource.full_name
        if not message:
            log.info("Watching again", resource=name)
        elif missing:
            log.warning("Not installed yet: run `everynode install`", resource=name)
        else:
            log.warning("Cannot watch, trying again", resource=name, error=shorten(message))

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A watch was restarted."""
        self._metrics.watch_restarted(resource, reason)

    def object_left_out(self, resource: Resource, message: str) -> None:
        """An object cannot be decoded; the cache keeps its previous version."""
        self._metrics.left_out(resource)
        log.warning(shorten(message), resource=resource.full_name)


def _fields(state: DaemonSetState, action: PodAction) -> dict[str, object]:
    return {
        "daemonset": state.label,
        "pod": action.name,
        "node": action.node,
        "because": action.cause.value,
    }


def _notices(action: PodAction) -> tuple[Notice, ...]:
    own = () if isinstance(action, CreatePod) or action.notice is None else (action.notice,)
    match action:
        case CreatePod():
            return (
                Notice(
                    "Normal",
                    "SuccessfulCreate",
                    f"Created pod: {action.name} on node {action.node}",
                ),
            )
        case DeletePod():
            done = Notice(
                "Normal", "SuccessfulDelete", f"Deleted pod: {action.name} on node {action.node}"
            )
            return (*own, done)
        case PatchPod():
            return own


def _failure_notice(state: DaemonSetState, action: PodAction, error: KubeError) -> Notice | None:
    match action:
        case CreatePod():
            return Notice("Warning", "FailedCreate", f"Error creating: {error.message}")
        case DeletePod():
            return Notice("Warning", "FailedDelete", f"Error deleting: {error.message}")
        case PatchPod() if action.cause is Cause.IN_PLACE:
            target = state.ledger.plan.target.name if state.ledger is not None else ""
            what = f"failed to update pod {action.name} in-place(revision {target})"
            return Notice("Warning", "FailedUpdatePodInPlace", f"{what}: {error.message}")
        case PatchPod():
            return None


def _reference(state: DaemonSetState) -> ObjectReference:
    ds = state.ds
    return ObjectReference(
        kind="DaemonSet",
        namespace=ds.namespace,
        name=ds.name,
        uid=ds.uid,
        api_version=resource_of(ds.flavour).api_version,
    )
