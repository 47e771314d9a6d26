"""Telling people what happened: log lines, and the events on the DaemonSet."""

from __future__ import annotations

import logging

from everynode.controller.workload import Workload
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.kube.errors import KubeError
from everynode.kube.resources import Resource

_LOG = logging.getLogger("everynode")


class Report:
    """Hears of everything that happens in the controller."""

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """An action on a pod succeeded."""
        _LOG.info("%s", _sentence(workload, action))

    def pod_refused(self, workload: Workload, action: PodAction, error: KubeError) -> None:
        """An action on a pod failed."""
        _LOG.warning("%s: %s", _sentence(workload, action), error)

    def pulled(self, workload: Workload, done: int, total: int) -> None:
        """So many of the nodes that will need the images have them."""

    def revision_refused(self, workload: Workload, error: KubeError) -> None:
        """A write of a revision failed."""
        _LOG.warning("%s: %s", workload.label, error)

    def status_refused(self, workload: Workload, error: KubeError) -> None:
        """A status could not be written."""
        _LOG.warning("%s: %s", workload.label, error)

    def adoption_refused(self, workload: Workload, error: KubeError) -> None:
        """Orphans could not be looked for or adopted."""
        _LOG.warning("%s: %s", workload.label, error)

    def contested(self, workload: Workload, seconds: float) -> None:
        """Another manager writes this status too."""
        _LOG.warning("%s is left alone for %d s: another controller", workload.label, seconds)

    def looked(self, workload: Workload, seconds: float) -> None:
        """A workload was looked at."""

    def selects_all(self, workload: Workload) -> None:
        """The selector is empty and would take every pod of the namespace."""

    def gone(self, workload: Workload) -> None:
        """The DaemonSet is gone."""

    def watch_trouble(self, resource: Resource, message: str) -> None:
        """Something new is wrong with a watch; an empty message says that all is well again."""
        if message:
            _LOG.warning("watching %s: %s", resource.full_name, message)

    def watch_restarted(self, resource: Resource, reason: str) -> None:
        """A watch had to begin anew."""

    def object_left_out(self, resource: Resource, message: str) -> None:
        """An object cannot be read, and what is known of it stays as it is."""
        _LOG.warning("%s", message)


def _sentence(workload: Workload, action: PodAction) -> str:
    match action:
        case CreatePod():
            verb = "create"
        case DeletePod():
            verb = "delete"
        case PatchPod():
            verb = "patch"
    return f"{workload.label}: {verb} pod {action.name} on {action.node} ({action.because})"
