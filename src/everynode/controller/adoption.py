"""Finding orphans that match a selector, adopting them, and releasing what no longer matches.

The pod watch shows only pods that carry a revision's hash. Orphans without one are found by a live
list: when a DaemonSet appears and now and then afterwards. Adopting such a pod gives it an empty
hash, which brings it into the watch as a pod of no known revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Protocol

from everynode.api.decode import Decoder
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.selector import SelectorError, format_selector
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.calls import pod_request, revision_request
from everynode.controller.observe import World, resource_of
from everynode.controller.workload import Workload
from everynode.decide.actions import PatchPod, PodAction
from everynode.decide.claim import (
    Claim,
    adopt_patch,
    adopt_revision_patch,
    claim,
    claim_revision,
    release_patch,
)
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.resources import PODS

SCAN_EVERY: Final = 600.0
_decode_pod: Final = Decoder(Pod).one


class Teller(Protocol):
    """Whoever hears of adoptions."""

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """A pod was adopted or released."""
        ...

    def adoption_refused(self, workload: Workload, error: KubeError) -> None:
        """Orphans could not be looked for or adopted; it is tried again later."""
        ...


class Adoption:
    """Claims of all workloads on pods and revisions that are nobody's."""

    def __init__(self, client: Client, clock: Clock, *, world: World, teller: Teller) -> None:
        self._client = client
        self._clock = clock
        self._world = world
        self._teller = teller
        self._scan_at: dict[str, float] = {}

    def due(self, workload: Workload, now: float) -> bool:
        """Whether it is time to look for orphans; the next time is noted."""
        if now < self._scan_at.get(workload.key, 0.0):
            return False
        self._scan_at[workload.key] = now + self._clock.jitter(SCAN_EVERY, SCAN_EVERY * 1.5)
        return True

    def next_scan(self, workload: Workload) -> float:
        """When orphans are looked for again."""
        return self._scan_at.get(workload.key, 0.0)

    def soon(self, workload: Workload) -> None:
        """Look for orphans at the next occasion: one was seen."""
        self._scan_at[workload.key] = 0.0

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        self._scan_at.pop(workload.key, None)

    async def scan(self, workload: Workload) -> None:
        """Adopt the orphans that match, release what no longer does."""
        try:
            await self._adopt(workload)
            for pod in workload.pods():
                if claim(workload.ds, pod) is Claim.RELEASE:
                    await self._patch(workload, release_patch(workload.ds, pod))
        except KubeError as error:
            self._teller.adoption_refused(workload, error)

    async def _adopt(self, workload: Workload) -> None:
        pods = [
            pod for pod in await self._live_pods(workload) if claim(workload.ds, pod) is Claim.ADOPT
        ]
        revisions = list(self._orphan_revisions(workload))
        # Adopting for a DaemonSet that is being deleted would destroy what its owner set free.
        if (pods or revisions) and await self._alive(workload):
            for revision in revisions:
                await self._adopt_revision(workload, revision)
            for pod in pods:
                await self._patch(workload, _visible(adopt_patch(workload.ds, pod), pod))

    async def _live_pods(self, workload: Workload) -> Iterable[Pod]:
        try:
            labels = format_selector(workload.ds.selector)
        except SelectorError:
            return ()
        if not labels:
            return ()
        return await self._client.read_all(
            PODS, _decode_pod, scope=verbs.Scope(namespace=workload.ds.namespace, labels=labels)
        )

    def _orphan_revisions(self, workload: Workload) -> Iterable[ControllerRevision]:
        orphans = self._world.revisions.by("orphans", workload.ds.namespace)
        for _, revision in sorted(orphans.items()):
            if claim_revision(workload.ds, revision) is Claim.ADOPT:
                yield revision

    async def _alive(self, workload: Workload) -> bool:
        resource = resource_of(workload.ds.flavour)
        request = verbs.get(resource, workload.ds.name, namespace=workload.ds.namespace)
        decode = partial(decode_daemonset, flavour=workload.ds.flavour)
        live = await self._client.read(request, decode)
        return live.uid == workload.key and live.metadata.deletion_timestamp is None

    async def _adopt_revision(self, workload: Workload, revision: ControllerRevision) -> None:
        action = adopt_revision_patch(workload.ds, revision)
        await self._client.write(revision_request(action, workload.ds.namespace), bytes)

    async def _patch(self, workload: Workload, action: PatchPod) -> None:
        await self._client.write(pod_request(action, workload.ds.namespace), bytes)
        self._teller.pod_written(workload, action)


def _visible(patch: PatchPod, pod: Pod) -> PatchPod:
    """Give an adopted pod the label by which we see our pods, if it lacks it."""
    if REVISION_HASH not in pod.metadata.labels:
        metadata: dict[str, Any] = patch.body["metadata"]
        metadata.setdefault("labels", {})[REVISION_HASH] = ""
    return patch
