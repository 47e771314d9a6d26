"""The own pods of one node, sorted by what becomes of them."""

from __future__ import annotations

from datetime import UTC, datetime

from everynode.api.objects import Pod
from everynode.decide.lifecycle import is_preparing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Pods:
    """Each pod of the node in exactly one of these groups, the senior first."""

    __slots__ = ("all", "finished", "gone", "preparing", "staying", "terminating")

    def __init__(self, pods: tuple[Pod, ...]) -> None:
        self.all = pods
        self.staying: tuple[Pod, ...] = ()  # neither ended nor on its way out
        self.preparing: tuple[Pod, ...] = ()  # PreparingDelete, held by a hook or released by it
        self.terminating: tuple[Pod, ...] = ()  # its deletion has been asked for
        self.finished: tuple[Pod, ...] = ()  # Failed or Succeeded
        self.gone: tuple[Pod, ...] = ()  # finished and being deleted: it holds but its name
        if len(pods) == 1:
            setattr(self, _group(pods[0]), pods)  # nearly always
        elif pods:
            self._sort()

    def _sort(self) -> None:
        self.all = tuple(sorted(self.all, key=seniority))
        for pod in self.all:
            group = _group(pod)
            setattr(self, group, (*getattr(self, group), pod))

    @property
    def senior(self) -> Pod | None:
        """The pod that stands for the node in the status: the first that is not as good as gone."""
        for pod in self.all:
            if pod not in self.gone:
                return pod
        return None

    @property
    def leaving(self) -> tuple[Pod, ...]:
        """The pods on their way out that still run."""
        return self.preparing + self.terminating

    @property
    def ended(self) -> tuple[Pod, ...]:
        """The pods that ended and whose name and failures the next one has to know."""
        return self.finished + self.gone


def _group(pod: Pod) -> str:
    if pod.finished:
        return "gone" if pod.terminating else "finished"
    if pod.terminating:
        return "terminating"
    return "preparing" if is_preparing(pod) else "staying"


def seniority(pod: Pod) -> tuple[bool, datetime, str]:
    """The order of pods on a node: scheduled before unscheduled, then by age, then by name."""
    meta = pod.metadata
    created = meta.creation_timestamp or _EPOCH
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    return not pod.spec.node_name, created, meta.name
