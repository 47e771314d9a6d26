"""OwnPods: the pods of a DaemonSet on one node, grouped by what happens to them."""

from __future__ import annotations

from datetime import UTC, datetime

from everynode.api.objects import Pod
from everynode.decide.node.availability import is_ready
from everynode.decide.pods.lifecycle import is_preparing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OwnPods:
    """Each pod of the node in exactly one group, the oldest first."""

    __slots__ = ("active", "all", "finished", "finished_terminating", "preparing", "terminating")

    def __init__(self, pods: tuple[Pod, ...]) -> None:
        self.all = pods
        self.active: tuple[Pod, ...] = ()  # neither finished nor leaving
        self.preparing: tuple[Pod, ...] = ()  # PreparingDelete, held by a hook or released by it
        self.terminating: tuple[Pod, ...] = ()  # deleted, and still running
        self.finished: tuple[Pod, ...] = ()  # Failed or Succeeded
        # Finished and being deleted: only its name is still in use.
        self.finished_terminating: tuple[Pod, ...] = ()
        if len(pods) == 1:
            setattr(self, _group_name(pods[0]), pods)  # the usual case
        elif pods:
            self._sort()

    def _sort(self) -> None:
        self.all = tuple(sorted(self.all, key=age_order))
        for pod in self.all:
            group = _group_name(pod)
            setattr(self, group, (*getattr(self, group), pod))

    @property
    def primary(self) -> Pod | None:
        """The pod that the status counts: the oldest that is not both finished and deleted."""
        for pod in self.all:
            if pod not in self.finished_terminating:
                return pod
        return None

    @property
    def leaving(self) -> tuple[Pod, ...]:
        """The pods that are being removed and still run."""
        return self.preparing + self.terminating

    @property
    def all_finished(self) -> tuple[Pod, ...]:
        """Finished pods: the name and the back-off of the next pod depend on them."""
        return self.finished + self.finished_terminating


def _group_name(pod: Pod) -> str:
    if pod.finished:
        return "finished_terminating" if pod.terminating else "finished"
    if pod.terminating:
        return "terminating"
    return "preparing" if is_preparing(pod) else "active"


def age_order(pod: Pod) -> tuple[bool, datetime, bool, str]:
    """Return the sort key of pods on a node: scheduled first, then the oldest.

    creationTimestamp has whole seconds. Of a surge's two pods of one second the Ready one is taken
    for the older one, so that the status counts the pod that serves; then the name decides.
    """
    meta = pod.metadata
    created = meta.creation_timestamp or _EPOCH
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    return not pod.spec.node_name, created, not is_ready(pod), meta.name
