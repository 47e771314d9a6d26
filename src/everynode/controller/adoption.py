"""Finding orphans that match a selector, adopting them, and releasing what no longer matches.

The pod watch shows only pods that carry a revision's hash. Orphans without one are found by a live
list: when a DaemonSet appears and, of such pods alone, now and then afterwards. Adopting one gives
it the hash that its last in-place update recorded, or an empty one: that brings it into the watch,
if need be as a pod of no known revision.

Nothing is decided of a DaemonSet that was just found, or for which an orphan was just seen, before
its orphans are adopted and the cache shows it: else it would get a second pod on their nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol

from everynode.api.decode import Decoder
from everynode.api.keys import POD_TEMPLATE_GENERATION, REVISION_HASH
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.versions import decode_daemonset
from everynode.clock import Clock
from everynode.controller.calls import pod_request, revision_request, selected_by
from everynode.controller.observe import World, resource_of
from everynode.controller.workload import Workload
from everynode.decide.actions import PatchPod, PodAction
from everynode.decide.claim import (
    Claim,
    adopt_patch,
    adopt_revision_patch,
    claim,
    claim_revision,
    lost_hash,
    release_patch,
    show_patch,
)
from everynode.kube import verbs
from everynode.kube.cache import Cache, key_of, number
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.resources import PODS, REVISIONS

SCAN_EVERY: Final = 600.0
_PAUSE: Final = 2.0  # after a refusal
_UNSEEN: Final = f"!{REVISION_HASH}"
_decode_pod: Final = Decoder(Pod).one
_decode_revision: Final = Decoder(ControllerRevision).one


class Teller(Protocol):
    """Whoever hears of adoptions."""

    def pod_written(self, workload: Workload, action: PodAction) -> None:
        """A pod was adopted or released."""
        ...

    def adoption_refused(self, workload: Workload, error: KubeError) -> None:
        """Orphans could not be looked for or adopted; it is tried again later."""
        ...


@dataclass(slots=True)
class _Claims:
    """How far the claims of one workload have come."""

    scan_at: float = 0.0
    needed: bool = True  # nothing is decided before the next scan is over
    scanning: bool = False
    # Adopted and not in the cache yet: the version to be seen, by key.
    pods: dict[str, int] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)


class Adoption:
    """Claims of all workloads on pods and revisions that are nobody's."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        world: World,
        again: Callable[[str, float], None],
        teller: Teller,
    ) -> None:
        self._client = client
        self._clock = clock
        self._world = world
        self._again = again  # look at the workload of this key at that time
        self._teller = teller
        self._claims: dict[str, _Claims] = {}

    def due(self, workload: Workload, now: float) -> bool:
        """Whether it is time to look for orphans; the next time is noted."""
        claims = self._claims_of(workload)
        if claims.scanning or now < claims.scan_at:
            return False
        claims.scan_at = now + self._clock.jitter(SCAN_EVERY, SCAN_EVERY * 1.5)
        claims.scanning = True
        return True

    def done(self, workload: Workload) -> bool:
        """Whether the workload can be decided on: what it must adopt is adopted and seen."""
        claims = self._claims[workload.key]
        if claims.pods or claims.revisions:
            _drop_seen(claims.pods, self._world.pods)
            _drop_seen(claims.revisions, self._world.revisions)
        return not (claims.needed or claims.pods or claims.revisions)

    def next_scan(self, workload: Workload) -> float:
        """When orphans are looked for again; a scan that is under way sees to that itself."""
        claims = self._claims[workload.key]
        return self._clock.now() + SCAN_EVERY if claims.scanning else claims.scan_at

    def soon(self, workload: Workload) -> None:
        """Look for orphans before anything else: one was seen."""
        claims = self._claims_of(workload)
        claims.scan_at, claims.needed = 0.0, True

    def _claims_of(self, workload: Workload) -> _Claims:
        claims = self._claims.get(workload.key)
        if claims is None:
            claims = self._claims[workload.key] = _Claims()
        return claims

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        self._claims.pop(workload.key, None)

    async def scan(self, workload: Workload) -> None:
        """Adopt the orphans that match, release what no longer does."""
        claims = self._claims.get(workload.key)
        if claims is None:
            return  # the DaemonSet went before its scan began
        asked_again = claims.scan_at
        try:
            await self._adopt(workload, claims)
            for pod in workload.pods():
                if claim(workload.ds, pod) is Claim.RELEASE:
                    await self._patch(workload, release_patch(workload.ds, pod))
            claims.needed = claims.needed and claims.scan_at != asked_again
        except KubeError as error:
            claims.scan_at = self._clock.now() + _PAUSE
            self._teller.adoption_refused(workload, error)
        finally:
            claims.scanning = False
            self._again(workload.key, min(claims.scan_at, self._clock.now()))

    async def _adopt(self, workload: Workload, claims: _Claims) -> None:
        ds = workload.ds
        scope = selected_by(ds)
        if scope is None:
            return
        # What carries the label is in the watch, which asks for a scan when it shows an orphan.
        sought = scope if claims.needed else replace(scope, labels=f"{scope.labels},{_UNSEEN}")
        pods = await self._client.read_all(PODS, _decode_pod, scope=sought)
        revisions = await self._client.read_all(REVISIONS, _decode_revision, scope=scope)
        for pod in pods:
            if claim(ds, pod) is Claim.OWN and REVISION_HASH not in pod.metadata.labels:
                await self._patch(workload, show_patch(pod))
        orphans = [pod for pod in pods if claim(ds, pod) is Claim.ADOPT]
        lost = [each for each in revisions if claim_revision(ds, each) is Claim.ADOPT]
        # Adopting for a DaemonSet that is being deleted would destroy what its owner set free.
        if not (orphans or lost) or not await self._alive(workload):
            return
        for revision in lost:
            action = adopt_revision_patch(ds, revision)
            answer = await self._client.write(
                revision_request(action, ds.namespace), _decode_revision
            )
            claims.revisions[key_of(answer)] = number(answer.metadata.resource_version)
        for pod in orphans:
            adopted = await self._patch(workload, _visible(adopt_patch(ds, pod), pod))
            claims.pods[key_of(adopted)] = number(adopted.metadata.resource_version)

    async def _alive(self, workload: Workload) -> bool:
        resource = resource_of(workload.ds.flavour)
        request = verbs.get(resource, workload.ds.name, namespace=workload.ds.namespace)
        decode = partial(decode_daemonset, flavour=workload.ds.flavour)
        live = await self._client.read(request, decode)
        return live.uid == workload.key and live.metadata.deletion_timestamp is None

    async def _patch(self, workload: Workload, action: PatchPod) -> Pod:
        request = pod_request(action, workload.ds.namespace)
        answer = await self._client.write(request, _decode_pod)
        self._teller.pod_written(workload, action)
        return answer


def _drop_seen(waiting: dict[str, int], cache: Cache[Any]) -> None:
    """Forget what the cache shows, or has shown and lost again."""
    for key, version in list(waiting.items()):
        cached = cache.get(key)
        known = number(cached.metadata.resource_version) if cached is not None else cache.version
        if known >= version:
            del waiting[key]


def _visible(patch: PatchPod, pod: Pod) -> PatchPod:
    """Give an adopted pod the label by which we see our pods, if it lacks it.

    And take from it the generation of another DaemonSet's template, which says nothing of ours.
    """
    metadata: dict[str, Any] = patch.body["metadata"]
    labels: dict[str, str | None] = metadata.setdefault("labels", {})
    if REVISION_HASH not in pod.metadata.labels:
        labels[REVISION_HASH] = lost_hash(pod)
    if POD_TEMPLATE_GENERATION in pod.metadata.labels:
        labels[POD_TEMPLATE_GENERATION] = None
    return patch
