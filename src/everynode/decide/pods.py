"""The own pods of one node, sorted by what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from everynode.api.objects import Pod
from everynode.decide.lifecycle import is_preparing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Pods:
    """Each pod of the node in exactly one of these lists, the senior first."""

    __slots__ = ("all", "finished", "gone", "preparing", "staying", "terminating")

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.all = sorted(pods, key=seniority)
        self.staying: list[Pod] = []  # neither ended nor on its way out
        self.preparing: list[Pod] = []  # PreparingDelete, held by a hook or released by it
        self.terminating: list[Pod] = []  # its deletion has been asked for
        self.finished: list[Pod] = []  # Failed or Succeeded
        self.gone: list[Pod] = []  # finished and being deleted: it holds nothing but its name
        for pod in self.all:
            self._list(pod).append(pod)

    def _list(self, pod: Pod) -> list[Pod]:
        if pod.finished:
            return self.gone if pod.terminating else self.finished
        if pod.terminating:
            return self.terminating
        return self.preparing if is_preparing(pod) else self.staying

    @property
    def senior(self) -> Pod | None:
        """The pod that stands for the node in the status: the first that is not as good as gone."""
        return next((pod for pod in self.all if not (pod.finished and pod.terminating)), None)

    @property
    def leaving(self) -> list[Pod]:
        """The pods on their way out that still run."""
        return self.preparing + self.terminating

    @property
    def ended(self) -> list[Pod]:
        """The pods that ended and whose name and failures the next one has to know."""
        return self.finished + self.gone


def seniority(pod: Pod) -> tuple[bool, datetime, str]:
    """The order of pods on a node: scheduled before unscheduled, then by age, then by name."""
    meta = pod.metadata
    created = meta.creation_timestamp or _EPOCH
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    return not pod.spec.node_name, created, meta.name
