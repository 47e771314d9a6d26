"""Telling people what happened: log lines, events on the DaemonSet, and metrics."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Final

from everynode.api.daemonset import DaemonSetStatus
from everynode.api.objects import ObjectReference
from everynode.controller.events import Recorder
from everynode.controller.log import Log
from everynode.controller.metrics import Metrics
from everynode.controller.observe import resource_of
from everynode.controller.workload import Workload
from everynode.decide.actions import Because, CreatePod, DeletePod, Notice, PatchPod, PodAction
from everynode.decide.conditions import COMPLETE
from everynode.kube.errors import KubeError
from everynode.kube.resources import Resource

_VERBS: Final = {CreatePod: "create", DeletePod: "delete", PatchPod: "patch"}
_DONE: Final = {"create": "Created pod", "delete": "Deleted pod", "patch": "Changed pod"}
_FAILED: Final = {verb: f"Cannot {verb} pod" for verb in _DONE}
_QUIET: Final = frozenset({Because.GATE, Because.RELABEL, Because.PULLED})
_SELECTS_ALL: Final = Notice(
    "Warning",
    "SelectingAll",
    "This daemon set is selecting all pods. A non-empty selector is required.",
)
log: Final = Log("controller")


class Report:
    """Hears of everything that happens in the controller."""

    def __init__(self, metrics: Metrics, recorder: Recorder, *, forgiving: bool = True) -> None:
        self._metrics = metrics
        self._recorder = recorder
        self._forgiving = forgiving
        # What was said of each DaemonSet last, by reason: decisions repeat it until it is seen.
        self._told: dict[str, dict[str, str]] = {}
        self._complete: dict[str, bool] = {}
        self._decided: dict[str, DaemonSetStatus] = {}

    # --- Pods ------------------------------------------------------------------------------

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """An action on a pod succeeded."""
        verb = _VERBS[type(action)]
        self._metrics.pod_action(verb, action.because)
        quiet = action.because in _QUIET
        if log.is_heard(logging.DEBUG if quiet else logging.INFO):
            (log.debug if quiet else log.info)(_DONE[verb], **_fields(workload, action))
        for notice in _notices(action):
            self._recorder.record(_about(workload), notice)

    def pod_refused(self, workload: Workload, action: PodAction, error: KubeError) -> None:
        """An action on a pod failed."""
        verb = _VERBS[type(action)]
        log.warning(_FAILED[verb], **_fields(workload, action), error=error.message)
        notice = _refusal(workload, action, error)
        if notice is not None:
            self._recorder.record(_about(workload), notice)

    def pulled(self, workload: Workload, done: int, total: int) -> None:
        """So many of the nodes that will need the images have them."""
        log.debug("Images fetched ahead", daemonset=workload.label, done=done, total=total)

    # --- DaemonSets ------------------------------------------------------------------------

    def noticed(self, workload: Workload, notice: Notice) -> None:
        """Something is to be said of the DaemonSet itself."""
        told = self._told.setdefault(workload.key, {})
        if told.get(notice.reason) == notice.message:
            return
        told[notice.reason] = notice.message
        write = log.warning if notice.type == "Warning" else log.info
        write(notice.reason, daemonset=workload.label, why=notice.message)
        self._recorder.record(_about(workload), notice)

    def status_decided(self, workload: Workload, status: DaemonSetStatus) -> None:
        """The rollout stands like this now."""
        if self._decided.get(workload.key) is status:
            return  # as most looks find it
        self._decided[workload.key] = status
        ds = workload.ds
        self._metrics.rollout(ds.flavour, ds.namespace, ds.name, status=status)
        complete = any(
            each.type == COMPLETE and each.status == "True" for each in status.conditions
        )
        if complete and not self._complete.get(workload.key):
            self._recorder.hurry(ds.uid)
        self._complete[workload.key] = complete

    def revision_refused(self, workload: Workload, error: KubeError) -> None:
        """A write of a revision failed."""
        log.warning("Cannot write revision", daemonset=workload.label, error=str(error))
        notice = Notice("Warning", "FailedCreateRevision", error.message)
        self._recorder.record(_about(workload), notice)

    def status_refused(self, workload: Workload, error: KubeError) -> None:
        """A status could not be written."""
        log.warning("Cannot write status", daemonset=workload.label, error=str(error))

    def adoption_refused(self, workload: Workload, error: KubeError) -> None:
        """Orphans could not be looked for or adopted."""
        log.warning("Cannot adopt orphans", daemonset=workload.label, error=str(error))

    def contested(self, workload: Workload, seconds: float) -> None:
        """Another manager writes this status too: the set is left alone for so long."""
        ds = workload.ds
        self._metrics.contested(ds.flavour, ds.namespace, ds.name, now=seconds > 0)
        if seconds > 0:
            message = (
                "Another controller writes the status of this DaemonSet; "
                f"Everynode leaves it alone for {seconds:.0f} seconds"
            )
            self.noticed(workload, Notice("Warning", "Contested", message))

    def looked(self, workload: Workload, seconds: float) -> None:
        """A workload was looked at."""
        self._metrics.looked(seconds)

    def selects_all(self, workload: Workload) -> None:
        """The selector is empty and would take every pod of the namespace."""
        self.noticed(workload, _SELECTS_ALL)

    def stumbled(self, workload: Workload, error: Exception) -> None:
        """Looking at the DaemonSet failed for a reason that nobody has thought of."""
        if not self._forgiving:
            raise error
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        why = f"{type(error).__name__}: {error}"
        log.error("Cannot handle DaemonSet", daemonset=workload.label, error=why, at=place)
        message = f"Everynode cannot handle this DaemonSet and leaves it alone for a while: {why}"
        self._recorder.record(_about(workload), Notice("Warning", "InternalError", message))

    def gone(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        ds = workload.ds
        self._told.pop(workload.key, None)
        self._complete.pop(workload.key, None)
        self._decided.pop(workload.key, None)
        self._metrics.forget(ds.flavour, ds.namespace, ds.name)
        log.info("DaemonSet is gone", daemonset=workload.label)

    # --- Watches ---------------------------------------------------------------------------

    def watch_trouble(self, resource: Resource, message: str, *, missing: bool) -> None:
        """Something new is wrong with a watch; an empty message says that all is well again."""
        name = resource.full_name
        if not message:
            log.info("Watching again", resource=name)
        elif missing:
            log.warning("Not installed yet: run `everynode install`", resource=name)
        else:
            log.warning("Cannot watch, trying again", resource=name, error=message)

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A watch had to begin anew."""
        self._metrics.watch_restarted(resource, reason)

    def object_left_out(self, resource: Resource, message: str) -> None:
        """An object cannot be read, and what is known of it stays as it is."""
        log.warning(message, resource=resource.full_name)


def _fields(workload: Workload, action: PodAction) -> dict[str, object]:
    return {
        "daemonset": workload.label,
        "pod": action.name,
        "node": action.node,
        "because": action.because.value,
    }


def _notices(action: PodAction) -> tuple[Notice, ...]:
    own = () if isinstance(action, CreatePod) or action.notice is None else (action.notice,)
    match action:
        case CreatePod():
            return (Notice("Normal", "SuccessfulCreate", f"Created pod: {action.name}"),)
        case DeletePod():
            done = Notice("Normal", "SuccessfulDelete", f"Deleted pod: {action.name}")
            return (*own, done)
        case PatchPod():
            return own


def _refusal(workload: Workload, action: PodAction, error: KubeError) -> Notice | None:
    match action:
        case CreatePod():
            return Notice("Warning", "FailedCreate", f"Error creating: {error.message}")
        case DeletePod():
            return Notice("Warning", "FailedDelete", f"Error deleting: {error.message}")
        case PatchPod() if action.because is Because.IN_PLACE:
            target = workload.ledger.plan.target.name if workload.ledger is not None else ""
            what = f"failed to update pod {action.name} in-place(revision {target})"
            return Notice("Warning", "FailedUpdatePodInPlace", f"{what}: {error.message}")
        case PatchPod():
            return None


def _about(workload: Workload) -> ObjectReference:
    ds = workload.ds
    return ObjectReference(
        kind="DaemonSet",
        namespace=ds.namespace,
        name=ds.name,
        uid=ds.uid,
        api_version=resource_of(ds.flavour).api_version,
    )
